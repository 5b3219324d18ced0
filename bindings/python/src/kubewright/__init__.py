"""Kubernetes control planes for tests: an API server, built-in controllers, a scheduler and simulated nodes in one process.

    with kubewright.Cluster() as cluster:
        client = kubernetes.config.new_client_from_config(cluster.kubeconfig)

The fixtures of the pytest plugin (`cluster`, `cluster_factory`) start and reset clusters for tests.
"""

from kubewright._cluster import Cluster
from kubewright._errors import ApiError, KubewrightError, ProgramNotFound, StartError

__all__ = ["ApiError", "Cluster", "KubewrightError", "ProgramNotFound", "StartError"]
