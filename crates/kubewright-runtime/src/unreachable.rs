//! An API server that is away: which, and why.

use std::task::{Context, Poll};

use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use http::Request;
use hyper_util::client::legacy;
use tower::{BoxError, Layer, Service};

/// A connection that could not be made, told by its cause and address.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the API server at {address}: {cause}")]
struct Unreachable {
    address: String,
    cause: String,
    #[source]
    error: BoxError,
}

/// What an error says of an API server that cannot be reached, if it is one.
pub(crate) fn unreachable(error: &kube::Error) -> Option<String> {
    let told = causes(error).find_map(|cause| cause.downcast_ref::<Unreachable>()).map(ToString::to_string);
    told.or_else(|| Some(format!("cannot reach the API server: {}", refusal(error)?)))
}

/// What the machine said to a connection that could not be made, if that is what went wrong: the innermost cause.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let is_refused = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
    };
    if causes(error).any(is_refused) { causes(error).last().map(ToString::to_string) } else { None }
}

/// An error, and what is behind it.
fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// A layer of a client's stack whose errors tell the address, where there is no connection to it.
#[derive(Clone, Debug)]
pub(crate) struct Addressed(pub(crate) String);

impl<S> Layer<S> for Addressed {
    type Service = AddressedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AddressedService { address: self.0.clone(), inner }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AddressedService<S> {
    address: String,
    inner: S,
}

impl<S, B> Service<Request<B>> for AddressedService<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let address = self.address.clone();
        let told = move |error: S::Error| -> BoxError {
            let error: BoxError = error.into();
            match refusal(&*error) {
                Some(cause) => Unreachable { address, cause, error }.into(),
                None => error,
            }
        };
        self.inner.call(request).map_err(told).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc, time::Duration};

    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kubewright_world::World;
    use parking_lot::Mutex;
    use tokio_util::sync::CancellationToken;
    use tracing_subscriber::{fmt, layer::SubscriberExt};

    use crate::{
        Connect, Context, Controller, Error, Key, Manager, Metrics, Outcome, Reconciler, logging::LogLevel,
    };

    struct Nothing;

    impl Reconciler for Nothing {
        async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> {
            Ok(Outcome::Done)
        }
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "u"}}]}"#;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_is_told_once_by_its_address_and_the_cause() {
        let lines = Lines::default();
        let (writer, (filter, _level)) = (lines.clone(), LogLevel::new("info").expect("a level"));
        let logs = tracing_subscriber::registry().with(filter);
        let logs = logs.with(fmt::layer().with_ansi(false).with_writer(move || writer.clone()));
        let _guard = tracing::subscriber::set_default(logs);
        let path = std::env::temp_dir().join(format!("kubewright-unreachable-{}", std::process::id()));
        std::fs::write(&path, KUBECONFIG).expect("written");
        let (connect, metrics) =
            (Connect { kubeconfig: Some(path.clone()), ..Connect::default() }, Metrics::new());
        let (client, _) = connect.client(metrics.requests()).await.expect("a client");
        std::fs::remove_file(path).expect("it was there");
        let mut manager = Manager::counting_in(metrics, client, World::real());
        manager.add(Controller::new("nothing", Nothing).for_kind::<ConfigMap>().reads::<Secret>());
        let minutes = Duration::from_secs(240);
        assert!(tokio::time::timeout(minutes, manager.run(CancellationToken::new())).await.is_err());
        let told = String::from_utf8(lines.0.lock().clone()).expect("text");
        let away: Vec<_> =
            told.lines().filter(|line| line.contains("Connect") || line.contains("reach")).collect();
        assert_eq!(away.len(), 1, "{told}");
        let line = "cannot reach the API server at 127.0.0.1:1: Connection refused (os error 111)";
        assert!(away[0].contains(line) && away[0].contains("WARN"), "{told}");
    }
}
