"""The doubling trick: a learner that is tuned for a known number of rounds, for an unknown one.

It starts anew in periods of 1, 2, 4, … rounds, each tuned for its length. If the regret of a period of 2^m rounds is at
most α·2^(m/2), that of any T rounds is at most √2/(√2 − 1)·α√T.

Reference: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, exercise 21.4.
"""

import math

DOUBLING = math.sqrt(2) / (math.sqrt(2) - 1)
"""3.41421…: the price of not knowing the number of rounds."""
