//! Controllers whose writes fail, and that are restarted between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use kubewright_controllers::Setup;
use kubewright_runtime::{CancellationToken, Manager};
use kubewright_world::Dice;
use tokio::sync::Notify;
use tower::{BoxError, service_fn};

use crate::support::World;

/// What becomes of writes.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) dice: Dice,
    /// One write in so many fails; half of those that do are done all the same, only their answer is lost.
    pub(crate) one_in: usize,
    /// After so many writes the controller is no more: it gets no answer and is started anew.
    pub(crate) life: usize,
}

/// Runs the built-in controller `name` with faults, one life after the other, for as long as the future is polled.
pub(crate) async fn run(world: &World, name: &str, faults: Faults) {
    loop {
        let ended = Arc::new(Notify::new());
        let client = unreliable(world.client.clone(), faults.clone(), Arc::clone(&ended));
        let mut manager = Manager::new(world.client.clone(), world.cluster.world().clone());
        let builtin =
            kubewright_controllers::all().iter().find(|builtin| builtin.name == name).expect("a name");
        for controller in builtin.controllers(&Setup::default()) {
            manager.add(controller.acting_as(client.clone()));
        }
        tokio::select! {
            biased;
            () = ended.notified() => {}
            result = manager.run(CancellationToken::new()) => panic!("the manager ended: {result:?}"),
        }
    }
}

fn unreliable(client: Client, faults: Faults, ended: Arc<Notify>) -> Client {
    let writes = Arc::new(AtomicUsize::new(0));
    let service = service_fn(move |request: Request<Body>| {
        let (client, faults) = (client.clone(), faults.clone());
        let (ended, writes) = (Arc::clone(&ended), Arc::clone(&writes));
        async move {
            if request.method() == Method::GET {
                return client.send(request).await.map_err(BoxError::from);
            }
            let fault = faults.dice.below(2 * faults.one_in);
            let last = writes.fetch_add(1, Ordering::SeqCst) + 1 >= faults.life;
            if fault == 0 && !last {
                return Err(BoxError::from("the server could not be reached"));
            }
            let answer = if last && fault % 2 == 0 { None } else { Some(client.send(request).await) };
            match answer {
                Some(answer) if !last && fault != 1 => answer.map_err(BoxError::from),
                _ if !last => Err(BoxError::from("the answer was lost")),
                _ => {
                    ended.notify_one();
                    std::future::pending().await
                }
            }
        }
    });
    Client::new(service, "default")
}
