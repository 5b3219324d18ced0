//! Operators in a test: installed, under their own account and rights, and with an end that the test decides on.

mod install;
mod replica;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kubewright_runtime::command::Operator;
use kubewright_runtime::rbac::{Observed, Report, Rights};
use parking_lot::Mutex;

use crate::Cluster;
use replica::Replica;

/// What makes the operator, each time that its process would start.
type Make = Arc<dyn Fn() -> Operator + Send + Sync>;

/// An operator that is about to be installed and run: `.await` does so.
#[must_use = "it is installed and runs when it is awaited"]
pub struct Deploy {
    cluster: Cluster,
    make: Make,
    replicas: usize,
    namespaces: Vec<String>,
}

/// An operator in the cluster of a test. Clones are of the same one; it runs until it is stopped or crashes, or the cluster
/// ends.
#[derive(Clone)]
pub struct Deployed(Arc<Inner>);

struct Inner {
    cluster: Cluster,
    make: Make,
    name: String,
    /// Which namespaces it looks at; none for all.
    namespaces: Vec<String>,
    replicas: Mutex<Vec<Replica>>,
    number: usize,
    /// Which rights its replicas have used, and lacked.
    observed: Observed,
}

impl Cluster {
    /// Installs an operator and runs it: the definitions of its kinds, its account and the rights that were generated for
    /// it are created, and its manager runs as that account and with no other rights, in the namespace
    /// `<operator>-system`. `operator` is the function that makes it, which a restart calls again as a new process would:
    ///
    /// ```no_run
    /// # use kubewright_runtime::command::Operator;
    /// # fn operator() -> Operator { Operator::new("greeter", "1.0") }
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let greeter = cluster.run(operator).replicas(2).await;
    /// greeter.restart().await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it is awaited, and the operator makes no sense or the API server does not take it.
    pub fn run(&self, operator: impl Fn() -> Operator + Send + Sync + 'static) -> Deploy {
        Deploy { cluster: self.clone(), make: Arc::new(operator), replicas: 1, namespaces: Vec::new() }
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
        let Self { cluster, make, replicas: number, namespaces } = self;
        let operator = make();
        let name = operator.name().to_owned();
        install::install(&cluster, &operator, &namespaces).await;
        let (replicas, observed) = (Mutex::default(), Observed::new());
        let inner = Inner { cluster: cluster.clone(), make, name, namespaces, replicas, number, observed };
        let deployed = Deployed(Arc::new(inner));
        deployed.start();
        cluster.add_operator(deployed.clone());
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
        &self.0.name
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
        let replicas = std::mem::take(&mut *self.0.replicas.lock());
        replicas.iter().for_each(Replica::ask_to_end);
        for replica in replicas {
            if let Some(why) = replica.ended().await {
                panic!("the operator {} ended: {why}", self.0.name);
            }
        }
    }

    /// Kills it in the middle of what it is at: nothing is finished, no lease is released. [`Self::restart`] starts it
    /// anew.
    pub async fn crash(&self) {
        let replicas = std::mem::take(&mut *self.0.replicas.lock());
        replicas.iter().for_each(Replica::kill);
        for replica in replicas {
            // Whatever it says: it was killed.
            let _ = replica.ended().await;
        }
    }

    /// Kills the replica that leads, or the only one, as [`Self::crash`] does; the others go on.
    pub async fn crash_leader(&self) {
        let leader = {
            let mut replicas = self.0.replicas.lock();
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
        self.0.replicas.lock().iter().for_each(|replica| replica.kill_after(writes));
    }

    /// Whether all of its replicas run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let replicas = self.0.replicas.lock();
        replicas.len() == self.0.number && replicas.iter().all(Replica::is_running)
    }

    /// Whether nothing is left for it to do, as [`Cluster::settle`] means it.
    pub(crate) fn is_at_rest(&self, horizon: Duration) -> bool {
        self.0.replicas.lock().iter().all(|replica| replica.is_at_rest(horizon))
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
        self.0.observed.report(&(self.0.make)().rights())
    }

    /// What is wrong with it: a replica has ended that nobody asked to, or was refused for a right that it has not.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.0.replicas.lock().iter().find_map(Replica::failure);
        if let Some(why) = failure {
            return Some(format!("the operator {} ended: {why}", self.0.name));
        }
        let mut report = self.rights();
        report.unused = Rights::default();
        (!report.is_clean()).then(|| format!("the operator {}: {report}", self.0.name))
    }

    fn start(&self) {
        let mut replicas = self.0.replicas.lock();
        for _ in 0..self.0.number {
            let Inner { cluster, make, namespaces, number, observed, .. } = &*self.0;
            replicas.push(Replica::start(cluster, make(), namespaces, *number > 1, observed));
        }
    }
}

impl fmt::Debug for Deployed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deployed").field(&self.0.name).finish()
    }
}
