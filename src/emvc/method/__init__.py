"""The method, once: rows against reference states, whether these are all samples, landmarks or a training set."""
