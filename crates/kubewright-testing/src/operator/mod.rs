//! Operators in a test: installed, under their own account and rights, and with an end that the test decides on.

mod install;
mod replica;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kubewright_runtime::Failing;
use kubewright_runtime::command::{Installation, Operator};
use kubewright_runtime::rbac::{Observed, Report, Rights};
use parking_lot::Mutex;

use crate::Cluster;
pub(crate) use install::INSTALLER;
use replica::Replica;

/// Program that [`Cluster::run`] runs: an operator, or a function that makes it. A restart calls the function again, as a new
/// process would, so that nothing is left of what the operator had in memory; what a value shares with its controllers it
/// keeps.
pub trait Program {
    /// What gives the operator of each process that starts.
    fn start(self) -> Start;
}

/// What gives the operator of a process that starts.
pub type Start = Box<dyn Fn() -> Arc<Operator> + Send + Sync>;

impl Program for Operator {
    fn start(self) -> Start {
        let operator = Arc::new(self);
        Box::new(move || Arc::clone(&operator))
    }
}

impl<F: Fn() -> Operator + Send + Sync + 'static> Program for F {
    fn start(self) -> Start {
        Box::new(move || Arc::new(self()))
    }
}

/// An operator that is about to be installed and run: `.await` does so.
#[must_use = "it is installed and runs when it is awaited"]
pub struct Deploy {
    cluster: Cluster,
    start: Start,
    replicas: usize,
    namespaces: Vec<String>,
}

/// An operator in the cluster of a test. Clones are of the same one; it runs until it is stopped or crashes, or the cluster
/// ends.
#[derive(Clone)]
pub struct Deployed {
    cluster: Cluster,
    state: Arc<State>,
}

/// What a cluster keeps of its operator.
pub(crate) struct State {
    start: Start,
    /// As it was first: what it is called, and which rights it declares.
    operator: Arc<Operator>,
    installation: Installation,
    replicas: Mutex<Vec<Replica>>,
    number: usize,
    /// Which rights its replicas have used, and lacked.
    observed: Observed,
}

impl Cluster {
    /// Installs an operator and runs it: the definitions of its kinds, its account and the rights that were generated for
    /// it are created, and its manager runs as that account and with no other rights, in the namespace
    /// `<operator>-system`; its webhooks are called in this process, for as long as it runs.
    ///
    /// ```no_run
    /// # use kubewright_runtime::command::{Installation, Operator};
    /// # fn operator() -> Operator { Operator::new("greeter", "1.0") }
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let greeter = cluster.run(operator).replicas(2).await;
    /// greeter.restart().await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it is awaited, and the operator makes no sense or the API server does not take it.
    pub fn run(&self, operator: impl Program) -> Deploy {
        Deploy { cluster: self.clone(), start: operator.start(), replicas: 1, namespaces: Vec::new() }
    }

    /// The operators that [run](Self::run) in it, or did.
    #[must_use]
    pub fn operators(&self) -> Vec<Deployed> {
        let states = self.states_of_operators().clone();
        states.into_iter().map(|state| Deployed { cluster: self.clone(), state }).collect()
    }
}

impl Deploy {
    /// So many of it, one of which works: more than one elect a leader. (One alone does not: it would spend a virtual year
    /// on renewing a lease that nobody else wants.)
    pub fn replicas(mut self, number: usize) -> Self {
        self.replicas = number;
        self
    }

    /// Only these namespaces are looked at, and it has no rights elsewhere (`--namespace`).
    pub fn watching(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    async fn deploy(self) -> Deployed {
        let Self { cluster, start, replicas: number, namespaces } = self;
        let operator = start();
        let installation = Installation { namespaces, ..Installation::default() };
        install::install(&cluster, &operator, &installation).await;
        let (replicas, observed) = (Mutex::default(), Observed::new());
        let state = Arc::new(State { start, operator, installation, replicas, number, observed });
        cluster.states_of_operators().push(Arc::clone(&state));
        let deployed = Deployed { cluster, state };
        deployed.start();
        deployed
    }
}

impl IntoFuture for Deploy {
    type Output = Deployed;
    type IntoFuture = Pin<Box<dyn Future<Output = Deployed>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.deploy())
    }
}

impl Deployed {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.state.operator.name()
    }

    /// Ends it as a rolling update does, if it runs, and starts it anew.
    ///
    /// # Panics
    /// When it ended with an error.
    pub async fn restart(&self) {
        self.stop().await;
        self.start();
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Panics
    /// When it ended with an error.
    pub async fn stop(&self) {
        let replicas = std::mem::take(&mut *self.state.replicas.lock());
        replicas.iter().for_each(Replica::ask_to_end);
        for replica in replicas {
            if let Some(why) = replica.ended().await {
                panic!("the operator {} ended: {why}", self.name());
            }
        }
    }

    /// Kills it in the middle of what it is at: nothing is finished, no lease is released. [`Self::restart`] starts it
    /// anew.
    pub async fn crash(&self) {
        let replicas = std::mem::take(&mut *self.state.replicas.lock());
        replicas.iter().for_each(Replica::kill);
        for replica in replicas {
            // Whatever it says: it was killed.
            let _ = replica.ended().await;
        }
    }

    /// Kills the replica that leads, or the only one, as [`Self::crash`] does; the others go on.
    pub async fn crash_leader(&self) {
        let leader = {
            let mut replicas = self.state.replicas.lock();
            let at = replicas.iter().position(Replica::is_leading);
            at.map(|at| replicas.remove(at))
        };
        if let Some(leader) = leader {
            leader.kill();
            let _ = leader.ended().await;
        }
    }

    /// Lets each replica write so many times more, and kills it when it is about to write again: between any two writes of
    /// it. What it writes to keep its lease does not count.
    ///
    /// ```no_run
    /// # use kubewright_testing::{Cluster, Deployed};
    /// # async fn example(cluster: Cluster, operator: Deployed) {
    /// for writes in 0.. {
    ///     operator.crash_after(writes);
    ///     // ... give it something to do ...
    ///     cluster.settle().await;
    ///     if operator.is_running() {
    ///         break; // it had no more to write
    ///     }
    ///     operator.restart().await;
    ///     cluster.settle().await;
    ///     // ... what has to hold, and undo it ...
    /// }
    /// # }
    /// ```
    pub fn crash_after(&self, writes: u64) {
        self.state.replicas.lock().iter().for_each(|replica| replica.kill_after(writes));
    }

    /// Whether all of its replicas run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let replicas = self.state.replicas.lock();
        replicas.len() == self.state.number && replicas.iter().all(Replica::is_running)
    }

    /// Whether nothing is left for it to do, as [`Cluster::settle`] means it.
    pub(crate) fn is_at_rest(&self, horizon: Duration) -> bool {
        self.state.replicas.lock().iter().all(|replica| replica.is_at_rest(horizon))
    }

    /// The keys that it failed to reconcile and tries again later.
    pub(crate) fn failing(&self) -> Vec<Failing> {
        self.state.replicas.lock().iter().flat_map(Replica::failing).collect()
    }

    /// How well the rights that it declares fit what it has done so far: which were missing (which fails every test at its
    /// end), and which it never used.
    ///
    /// ```no_run
    /// # async fn example(operator: kubewright_testing::Deployed) {
    /// let rights = operator.rights();
    /// assert!(rights.unused.is_empty(), "{rights}");
    /// # }
    /// ```
    #[must_use]
    pub fn rights(&self) -> Report {
        self.state.observed.report(&self.state.operator.rights())
    }

    /// What is wrong with it: a replica has ended that nobody asked to, or was refused for a right that it has not.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.state.replicas.lock().iter().find_map(Replica::failure);
        if let Some(why) = failure {
            return Some(format!("the operator {} ended: {why}", self.name()));
        }
        let mut report = self.rights();
        report.unused = Rights::default();
        (!report.is_clean()).then(|| format!("the operator {}: {report}", self.name()))
    }

    fn start(&self) {
        let State { start, installation, replicas, number, observed, .. } = &*self.state;
        let mut replicas = replicas.lock();
        for _ in 0..*number {
            replicas.push(Replica::start(&self.cluster, &start(), installation, *number > 1, observed));
        }
    }
}

impl fmt::Debug for Deployed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deployed").field(&self.name()).finish()
    }
}
