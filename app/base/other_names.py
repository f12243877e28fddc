"""Names that other libraries have for algorithms, and the algorithm here that serves the same purpose."""

from collections.abc import Mapping
from types import MappingProxyType

_NAMES = {
    "adaboost": ("ada", "adaboostclassifier"),
    "agglomerative": ("agglomerativeclustering", "dbscan", "hdbscan", "hclust", "hierarchical", "linkage", "optics"),
    "bagging": ("baggingclassifier", "baggingregressor"),
    "decision_tree": ("cart", "c45", "decisiontreeclassifier", "decisiontreeregressor", "dt", "j48", "rpart", "tree"),
    "gaussian_process": ("gaussianprocessregressor", "gp", "gpr", "kriging"),
    "generative_bayes": ("bayes", "bernoullinb", "gaussiannb", "multinomialnb", "naivebayes", "nb", "qda"),
    "gmm": ("em", "gaussianmixture", "mclust", "mixture"),
    "gradient_boosting": (
        *("boosting", "catboost", "catboostclassifier", "catboostregressor", "gbdt", "gbm", "gbrt"),
        *("gradientboostingclassifier", "gradientboostingregressor", "histgradientboosting", "lgb", "lgbm"),
        *("lgbmclassifier", "lgbmregressor", "lightgbm", "xgb", "xgbclassifier", "xgboost", "xgbregressor"),
    ),
    "kmeans": ("kmeansplusplus", "minibatchkmeans"),
    "kmedoids": ("clara", "pam"),
    "knn": ("kneighborsclassifier", "kneighborsregressor", "knearestneighbors", "knearestneighbours", "nearest"),
    "lasso": ("elasticnet", "enet", "glmnet", "lars", "lassocv"),
    "lda": ("lineardiscriminantanalysis",),
    "linear": ("lineardiscriminant", "linearregression", "lm", "ols", "regression"),
    "linear_sgd": ("sgd", "sgdclassifier", "sgdregressor", "vw", "vowpalwabbit"),
    "logistic": ("glm", "logisticregression", "logit", "logreg", "lr", "maxent", "softmax"),
    "mlp": ("ann", "deeplearning", "mlpclassifier", "mlpregressor", "neuralnetwork", "nn", "nnet"),
    "one_class_svm": ("iforest", "isolationforest", "localoutlierfactor", "lof", "oneclasssvm"),
    "pca": ("svd", "truncatedsvd"),
    "random_forest": (
        *("drf", "extratrees", "extratreesclassifier", "forest", "randomforestclassifier", "randomforestregressor"),
        *("ranger", "rf"),
    ),
    "ridge": ("ridgeclassifier", "ridgecv", "ridgeregression"),
    "rules": ("ripper", "skoperules"),
    "smacof": ("isomap", "tsne", "umap"),
    "som": ("kohonen", "minisom", "selforganisingmap", "selforganizingmap"),
    "spectral": ("spectralclustering",),
    "stacking": ("stack", "stackingclassifier", "stackingregressor", "superlearner"),
    "svm": ("linearsvc", "svc"),
    "svr": ("linearsvr", "supportvectorregression"),
    "committee": ("voting", "votingclassifier", "votingregressor"),
}
OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {name: name_here for name_here, names in _NAMES.items() for name in names}
)
"""By the name without upper case, spaces, hyphens and underscores."""
