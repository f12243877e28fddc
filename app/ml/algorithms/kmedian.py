r"""k-median: k rows of the table as centres, with small dissimilarities of all rows to the nearest of them.

Minimises Σ wᵢ d(xᵢ, m(xᵢ)) over sets of k rows, the medoids, with m(x) the medoid nearest to x and d any of the
metrics, or a square table of dissimilarities between the rows. This is the objective of PAM, and of facility location
where every site can be reached from every other. From rows far from each other, a medoid and another row change places
wherever this lowers the sum, until no single swap does; the best of several starts is kept. That is in general not the
lowest sum there is. Plain dissimilarities, unlike the squares of `kmedoids`, let far rows pull little.

A row equally near to two medoids belongs to the first of them, and so does a new row, which belongs to the nearest
medoid. Equal rows count as one of their weight; with fewer distinct rows than k there are as many clusters as distinct
rows. Of a square table, a new row has its dissimilarities to the training rows. The summary and the report list the
medoids by row number and, where the rows have names, by name.

In short: k rows of the table are chosen as examples, such that the distances of all rows to the nearest example add up
to little. A row belongs to the example nearest to it.

Use when: a cluster should be represented by a row that exists and a few far rows should not move it, or sites are to be
placed near those they serve.

Ten points in two clusters by Manhattan distance. The well-known start with rows 1 and 7 has loss 20, and putting row 6
in the place of row 7 would raise it to 22; the lowest loss of all pairs of rows is 18:

>>> import numpy as np
>>> points = np.array([[2.0, 6], [3, 4], [3, 8], [4, 7], [6, 2], [6, 4], [7, 3], [7, 4], [8, 5], [7, 6]])
>>> data, params = Data.of(Task.CLUSTERING, points), KMedian(n_clusters=2, metric="manhattan")
>>> round(float(fit(params, data, Context.of(0)).state.losses.sum()), 9)
18.0

References: Kaufman & Rousseeuw (1990), Finding Groups in Data, ch. 2; Schubert & Rousseeuw (2021), Inf. Syst.
101:101804; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 22.2.
"""

from app.ml.contract.algorithm import Algorithm, Context, Data, Fit, Form, Meaning, Output, Symmetry, Task
from app.ml.numerics.clustering import medoid_model
from app.ml.numerics.clustering.medoid_model import MedoidParams, State, fit_medoids, predict


class KMedian(MedoidParams):
    """k-median clustering."""


def fit(params: KMedian, data: Data, context: Context) -> Fit[State]:
    return fit_medoids(params, data, context, power=1.0)


ALGORITHM = Algorithm(
    tasks={Task.CLUSTERING},
    params=KMedian,
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
