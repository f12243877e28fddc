"""Statistics: error bars, intervals, resampling and distributions."""
