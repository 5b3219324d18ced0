//! A manager that never runs: what a controller is made with where its rights are to be known and there is no cluster.

use http::{Request, Response};
use kube::{Client, client::Body};
use kubewright_world::World;
use tower::service_fn;

use crate::{Error, Manager};

/// Gives `work` a manager that has no API server.
///
/// # Errors
/// When there is no tokio runtime, and none can be made.
pub(super) fn nowhere<T>(name: &str, work: impl FnOnce(&Manager) -> T) -> Result<T, Error> {
    // A client needs a runtime to be made in, though nothing is asked.
    let own = match tokio::runtime::Handle::try_current() {
        Ok(_) => None,
        Err(_) => Some(tokio::runtime::Builder::new_current_thread().build().map_err(Error::new)?),
    };
    let _entered = own.as_ref().map(tokio::runtime::Runtime::enter);
    let refuse = service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, _>(Error::new("there is no API server: the manager is made to know its rights"))
    });
    Ok(work(&Manager::new(Client::new(refuse, name), World::real())))
}
