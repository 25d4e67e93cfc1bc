"""What the names in a trace mean: compiling, loading from a cache, lowering, dispatching, running.

The names are those recorded by JAX 0.4 to 0.12, XLA and libtpu up to 0.0.52; older ones stand beside newer.
"""

import re

STEP_NUMBER = "step_num"  # the stat that makes an annotation one of a step
OPERATION = "hlo_op"  # the stat that the CPU executor gives an operation
DROPPED = "Trace Buffers Dropped"

TENSOR_CORE = re.compile(r"/device:TPU:(\d+)")  # whole: "/device:TPU:0 SparseCore 1" is no device of its own
GPU = re.compile(r"/device:GPU:(\d+)")
STEP_LINES = ("Steps", "Step")
PROGRAM_LINE = "XLA Modules"

FRAME = "$"  # how a Python frame's name begins
CPU_EXECUTOR = re.compile(r"tf_XLA(Execute|PjRtCpuClient|Eigen)\b.*")
CHORES = re.compile(r"ThreadpoolListener::.*|SlinkyThreadPool::.*|end: .*")  # what its threads do beside operations
TPU_RUNTIME = re.compile(r"tpu::System::\w+.*")
STEP_CALL = re.compile(r"PjitFunction\(.*\)")
DISPATCH = re.compile(r"PjitFunction\(.*\)|\w*LoadedExecutable::Execute\w*")

# Anchored, each the whole name: a user's annotation "compile_report" is none of these.
UNSTEADY = {
    "compile": re.compile(
        r"backend_compile(_and_load)?"
        r"|(\w+::)*\w*(Compiler|Client)::Compile\w*(\(.*)?"
        r"|CompileCpuExecutable|\w+Compiler::(RunBackend|RunHloPasses)"
        r"|XLA::(TPU|JF) .+"
        r"|\$(.*/)?compiler\.py:\d+ backend_compile(_and_load)?"
    ),
    "cache-load": re.compile(
        r"(\w+::)*\w*(Client|Executable)::Deserialize\w*(\(.*)?|(\w+::)*(LoadProgramCacheMiss|ActualLoad)"
    ),
    "lowering": re.compile(r"lower_sharding_computation|trace_to_jaxpr_(dynamic|nounits)"),
}


def unsteady(name: str) -> str | None:
    """Say which of ``compile cache-load lowering`` a name stands for, None for none.

    Args:
        name: of an event on any thread.

    >>> unsteady("TfrtTpuCompiler::Compile"), unsteady("CommonPjRtClient::DeserializeExecutable")
    ('compile', 'cache-load')
    >>> unsteady("compile_report"), unsteady("LoadProgramMaybeFromCache")
    (None, None)
    """
    plain = name.partition("#")[0]
    return next((kind for kind, pattern in UNSTEADY.items() if pattern.fullmatch(plain)), None)
