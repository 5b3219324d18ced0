//! What is shown: a cluster that runs, or a recording.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kubewright_control_plane::ControlPlane;
use kubewright_control_plane::admin::Admin;
use kubewright_control_plane::journal::Journal;
use kubewright_control_plane::recording::{Did, Recording, Revision, Write, Writer};
use kubewright_recording::Record;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::besides::Besides;
use crate::history::{History, LIVE};

/// More writes than these are never noted before one of an earlier revision.
const UNDER_WAY: usize = 1_000;

/// What is shown; clones are of the same.
#[derive(Clone)]
pub struct View(Arc<Inner>);

struct Inner {
    title: String,
    history: Mutex<History>,
    /// What a recording has besides writes.
    besides: Besides,
    live: Option<Live>,
}

/// What there is of a cluster that runs.
pub(crate) struct Live {
    journal: Journal,
    pub(crate) admin: Option<Admin>,
    /// An administrator, for the paths under `/kubewright`.
    pub(crate) client: Client,
}

impl View {
    /// A view of a recording, and of what it has besides writes; `title` says what it is of.
    #[must_use]
    pub fn of_recording(recording: &Recording, besides: Vec<Record>, title: impl Into<String>) -> Self {
        let history = Mutex::new(History::of_recording(recording));
        let besides = besides.into_iter().collect();
        Self(Arc::new(Inner { title: title.into(), history, besides, live: None }))
    }

    /// A view of nothing yet, for what [`Self::note`] is given; it keeps as much as that of a cluster that runs.
    #[must_use]
    pub fn of_watches(title: impl Into<String>) -> Self {
        let history = Mutex::new(History::starting_from([], Revision(0), LIVE));
        let besides = Besides::default();
        Self(Arc::new(Inner { title: title.into(), history, besides, live: None }))
    }

    /// Adds a write to a view [of watches](Self::of_watches) and gives its number in their order, which stands for its revision: of
    /// several watches, events do not come in the order of revisions.
    pub fn note(&self, write: Write) -> Revision {
        let mut history = self.0.history.lock();
        let revision = Revision(history.last().0 + 1);
        history.add(Arc::new(Write { revision, ..write }));
        revision
    }

    /// A view of a control plane that runs, from now on: the objects that are there, and the writes to come. It shows requests, time
    /// and faults, and what operators on this SDK tell of their reconciles, where the control plane has an [`Admin`].
    ///
    /// `None` where it has no [journal](kubewright_control_plane::Builder::journal).
    #[must_use]
    pub fn of_control_plane(control_plane: &ControlPlane, title: impl Into<String>) -> Option<Self> {
        let journal = control_plane.journal()?.clone();
        let snapshot = control_plane.server().engine().store().snapshot();
        let now = control_plane.world().clock.now();
        // Whose the writes of before the journal were is not known, and when is in the objects.
        let objects = snapshot.collections().flat_map(|collection| {
            snapshot.range(collection, "", None).map(move |entry| Write {
                revision: entry.revision,
                time: now,
                by: Writer::default(),
                did: Did::Create,
                collection: Arc::clone(collection),
                key: Arc::clone(&entry.key),
                bytes: entry.bytes.clone(),
            })
        });
        let mut history = History::of_journal(&journal)
            .unwrap_or_else(|| History::starting_from(objects, snapshot.revision(), LIVE));
        history.follow(&journal);
        if let Some(admin) = control_plane.admin() {
            admin.ask_for_reconciles();
        }
        let live = Live { journal, admin: control_plane.admin().cloned(), client: control_plane.client() };
        let (history, besides) = (Mutex::new(history), Besides::default());
        Some(Self(Arc::new(Inner { title: title.into(), history, besides, live: Some(live) })))
    }

    /// What it is of.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.0.title
    }

    /// The cluster that runs; none for a recording.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.0.live.as_ref()
    }

    /// What a recording has besides writes.
    pub(crate) fn besides(&self) -> &Besides {
        &self.0.besides
    }

    /// The admin of a cluster that runs.
    pub(crate) fn admin(&self) -> Option<&Admin> {
        self.live()?.admin.as_ref()
    }

    /// The past, as far as it has come.
    pub(crate) fn history<T>(&self, look: impl FnOnce(&History) -> T) -> T {
        let mut history = self.0.history.lock();
        if let Some(live) = &self.0.live {
            history.follow(&live.journal);
        }
        look(&history)
    }

    /// Changes with every write; none for a recording.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<Revision>> {
        self.0.live.as_ref().map(|live| live.journal.follow())
    }

    /// What time it is in the cluster, where that can be known.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.admin().map(Admin::now)
    }

    /// Takes over what was written, until `self` is all that is left: so that nothing is missed while no page is open.
    pub(crate) async fn keep_up(&self) {
        let Some(mut changes) = self.changes() else { return std::future::pending().await };
        while changes.changed().await.is_ok() {
            self.history(|_| ());
        }
    }
}

impl History {
    /// All that a journal has; `None` when it does not have the beginning.
    fn of_journal(journal: &Journal) -> Option<Self> {
        let first = journal.written(|_| true);
        let begins = journal.forgotten() == 0 && first.first().is_some_and(|one| one.revision == Revision(1));
        begins.then(|| Self::starting_from([], Revision(0), LIVE))
    }

    /// Adds what a journal has and this does not, in the order of revisions. Commits at the same time may be noted in another: a
    /// write waits for those before it, unless so many are waiting that these must have been forgotten.
    fn follow(&mut self, journal: &Journal) {
        let last = self.last();
        let mut written = journal.written(|one| one.revision > last);
        written.sort_by_key(|one| one.revision);
        let mut waiting = written.len();
        for one in written {
            if one.revision.0 != self.last().0 + 1 && waiting < UNDER_WAY {
                return;
            }
            waiting -= 1;
            self.add(Arc::new(Write::from(one)));
        }
    }
}
