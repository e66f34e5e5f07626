"""The board: methods, data sets, conditions and seeds, and what their records say."""
