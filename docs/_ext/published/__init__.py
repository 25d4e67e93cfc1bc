"""What others published, and what the package answers to the same question.

The cases stand in ``tests/cases``. A case becomes a call here:

- one of ``answers.json`` by its kind, in ``exact.BY_KIND``;
- one of ``published.toml`` by its id, in ``rates.RATES`` (ridge points, rooflines), ``models.MODELS`` (parameters,
  weights, caches) or ``states.STATES`` (training states, chips, slices). ``inputs`` makes chips and models from the
  letters that a source uses.

To add one: the case with its source, inputs and tolerance into ``tests/cases/published.toml``, and a line of calls
into the table that its question belongs to; or into ``left_out.toml``, with the reason. ``comparison`` sets both
answers side by side, and ``tables`` shows them.
"""
