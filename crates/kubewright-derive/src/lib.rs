//! The attribute of Kubewright's tests, [`macro@test`]. It is used as `kubewright::test`.

mod arguments;
mod expand;
mod faults;
mod kubernetes;

use proc_macro::TokenStream;

/// A test with a cluster of its own, in virtual time.
///
/// ```ignore
/// #[kubewright::test]
/// async fn the_child_comes_back(cluster: Cluster) {
///     let operator = cluster.run(my_operator::operator).await;
///     // ...
/// }
/// ```
///
/// The function is `async` and takes the cluster, or nothing. It returns nothing, or a `Result<(), E>` whose error can be
/// shown (`E: Debug`). It runs on one thread, on tokio's paused clock: an hour in which nobody has work to do passes at
/// once. A panic fails the test, also one in a task that it or an operator started. The cluster ends with it.
///
/// | argument | what it says |
/// |---|---|
/// | `controllers = "*,-deployment"` | which built-in controllers run, as kube-controller-manager's `--controllers` says it; default `*`, all of them |
/// | `nodes = 3` | how many simulated nodes there are; default 1 |
/// | `namespaces = ["a", "b"]` | namespaces that are there; the cluster's helpers act in the first, without any in `default` |
/// | `kubernetes = "1.35"` | the version of Kubernetes that the cluster is; a list, `kubernetes = ["1.35", "1.37"]`, makes a test of each, `<name>_v1_35` and `<name>_v1_37`; default that of every cluster (`KubernetesVersion::DEFAULT`) |
/// | `seed = 7` | what names, uids and all that is left to chance start from; default 0 |
/// | `seeds = 200` | the body runs once under each of the seeds 0 to 199, each with a new cluster; the first that fails is reported |
/// | `faults` | under each seed other things go wrong on the way; `faults(conflict, crash)` names which |
/// | `real = true` | another test, `<name>_real`, runs the body against the cluster of the kubeconfig `KUBEWRIGHT_TEST_KUBECONFIG`, in real time and in a namespace of its own; it is ignored unless it is asked for (`cargo test -- --ignored`) |
///
/// `KUBEWRIGHT_SEED=17` in the environment has the body run under that seed alone: what the report of a failure says.
///
/// What is wrong is told when it is compiled:
///
/// ```compile_fail
/// # #[cfg(not(doctest))] fn main() {}
/// #[kubewright_derive::test(node = 3)]
/// async fn misspelt() {}
/// ```
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    expand::test(arguments.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
