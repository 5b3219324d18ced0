//! How the replicas of a manager divide the work.

use std::sync::Arc;

use kube::Client;
use kubewright_world::World;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Error, LeaderElection, Leadership, Shard, Sharding,
    leader::{Elector, gate::Gate},
    runners::{self, Extras, Runner},
    shard::{Keys, RingMember},
    worker::Turns,
};

/// Who of the replicas works.
pub(crate) enum Replicas {
    /// Each, on everything.
    Independent,
    /// One.
    Elected(Box<Elector>),
    /// Each, on some of the keys.
    Sharing(Box<RingMember>),
}

impl Replicas {
    pub(crate) fn elected(client: Client, world: World, election: LeaderElection) -> Self {
        Self::Elected(Box::new(Elector::new(client, world, election)))
    }

    pub(crate) fn sharing(client: Client, world: World, sharding: Sharding) -> Self {
        Self::Sharing(Box::new(RingMember::new(client, world, sharding)))
    }

    /// Whether a controller works only when it is this replica's turn.
    pub(crate) fn take_turns(&self) -> bool {
        self.gate().is_some()
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        match self {
            Self::Elected(elector) => elector.mistakes(),
            Self::Sharing(member) => member.mistakes(),
            Self::Independent => Vec::new(),
        }
    }

    pub(crate) fn leadership(&self) -> Option<Leadership> {
        if let Self::Elected(elector) = self { Some(elector.leadership()) } else { None }
    }

    pub(crate) fn shard(&self) -> Option<Shard> {
        if let Self::Sharing(member) = self { Some(member.shard()) } else { None }
    }

    /// When it is this replica's turn; `None` if always.
    pub(crate) fn turns(&self) -> Option<Turns> {
        self.gate().map(|gate| Turns { gate: gate.clone(), keys: self.keys() })
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        if let Self::Sharing(member) = self { Some(member.keys()) } else { None }
    }

    /// A client whose writes pass when it is this replica's turn.
    pub(crate) fn guard(&self, client: Client) -> Client {
        self.gate().map(|gate| gate.guard(&client)).unwrap_or(client)
    }

    /// What lets writes through when it is this replica's turn.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        match self {
            Self::Elected(elector) => Some(elector.gate()),
            Self::Sharing(member) => Some(member.gate()),
            Self::Independent => None,
        }
    }

    /// Lets controllers work when it is this replica's turn, until `stop`; what is returned waits for their end, and ends
    /// them when it is dropped.
    pub(crate) fn start(
        self,
        runners: Vec<Runner>,
        extras: Extras,
        stop: &CancellationToken,
        failed: &mpsc::Sender<Error>,
    ) -> impl Future<Output = ()> + use<> {
        let (runners, stop, keys): (Arc<[Runner]>, _, _) = (runners.into(), stop.clone(), self.keys());
        let extras = Arc::new(extras);
        let leading = extras.clone();
        let lead = move |term| runners::serve(runners.clone(), leading.clone(), keys.clone(), term);
        let failed = failed.clone();
        let task: Option<AbortOnDropHandle<()>> = match self {
            Self::Independent => {
                let tasks = extras.start(&stop);
                Some(AbortOnDropHandle::new(tokio::spawn(tasks.ended())))
            }
            Self::Elected(elector) => {
                // The settings were checked before.
                let work = async move { drop(elector.run(stop, lead).await) };
                Some(runners::spawn("the leader election".to_owned(), work, failed))
            }
            Self::Sharing(member) => {
                let work = member.run(stop, lead);
                Some(runners::spawn("the sharding of keys".to_owned(), work, failed))
            }
        };
        async move {
            if let Some(task) = task {
                // A panic was reported by the task itself.
                let _ = task.await;
            }
        }
    }
}
