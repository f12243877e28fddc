r"""k-medoids: k rows of the table as centres, with small squared dissimilarities of all rows to the nearest of them.

Minimises Σ wᵢ d(xᵢ, m(xᵢ))² over sets of k rows, the medoids, with m(x) the medoid nearest to x: the objective of
k-means, but that centres are rows and d is any of the metrics, or a square table of dissimilarities between the rows.
From rows far from each other, a medoid and another row change places wherever this lowers the sum (PAM), until no
single swap does; the best of several starts is kept. That is in general not the lowest sum there is. With plain
dissimilarities in place of squares take `kmedian`: it is what PAM and the packages named k-medoids minimise.

A row equally near to two medoids belongs to the first of them, and so does a new row, which belongs to the nearest
medoid. Equal rows count as one of their weight; with fewer distinct rows than k there are as many clusters as distinct
rows. Of a square table, a new row has its dissimilarities to the training rows. The summary and the report list the
medoids by row number and, where the rows have names, by name.

In short: k rows of the table are chosen as examples, such that every row is near one of them. A row belongs to the
example nearest to it.

Use when: a cluster should be represented by a row that exists, or only dissimilarities of rows are known. Centres that
are means, of k-means, are faster for many rows.

Ten points, of which two are medoids: no other two have squared Euclidean distances that add up to less than 28.

>>> import numpy as np
>>> points = np.array([[2.0, 6], [3, 4], [3, 8], [4, 7], [6, 2], [6, 4], [7, 3], [7, 4], [8, 5], [7, 6]])
>>> state = fit(KMedoids(n_clusters=2), Data.of(Task.CLUSTERING, points), Context.of(0)).state
>>> sorted(state.numbers.tolist()), round(float(state.losses.sum()), 9)
([0, 7], 28.0)

References: Kaufman & Rousseeuw (1990), Finding Groups in Data, ch. 2; Schubert & Rousseeuw (2021), Inf. Syst.
101:101804; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

from app.ml.contract.algorithm import Algorithm, Context, Data, Fit, Form, Meaning, Output, Symmetry, Task
from app.ml.numerics.clustering import medoid_model
from app.ml.numerics.clustering.medoid_model import MedoidParams, State, fit_medoids, predict


class KMedoids(MedoidParams):
    """k-medoids clustering."""


def fit(params: KMedoids, data: Data, context: Context) -> Fit[State]:
    return fit_medoids(params, data, context, power=2.0)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=KMedoids,
    state=State,
    fit=fit,
    predict=predict,
    graph=medoid_model.to_tensor,
    memory=medoid_model.memory,
    seconds=medoid_model.seconds,
    rowwise=True,
    relations={Form.SQUARE: {Meaning.DISSIMILARITY}},
    outputs={
        "distance": Output(
            "Dissimilarity to the nearest medoid: by the metric in the prepared (scaled) columns, or as it was given.",
            medoid_model.distance,
        )
    },
    prototypes=medoid_model.prototypes,
    summary=medoid_model.summary,
    breaks={
        Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first.",
    },
)
