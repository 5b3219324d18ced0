module kubewright/tests/packaging

go 1.26.0
