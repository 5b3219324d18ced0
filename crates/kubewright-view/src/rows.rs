//! What is shown, for programs that draw it themselves.

use kubewright_control_plane::recording::{Did, Revision};

use crate::besides::ReconcileRow;
use crate::row::Row;
use crate::secrets::Secrets;
use crate::{View, fields};

/// What was written since a revision.
#[derive(Debug)]
pub struct Since {
    /// The objects of the beginning, in the place of all that was known: what followed the revision is not kept any more.
    pub base: Option<Vec<Row>>,
    /// The writes, oldest first.
    pub rows: Vec<Row>,
}

impl View {
    /// What was written since a revision, 0 for all.
    #[must_use]
    pub fn since(&self, revision: Revision) -> Since {
        let (base, writes) = self.history(|history| {
            let is_kept = history.through() <= revision;
            let base = (!is_kept).then(|| history.base(0, usize::MAX));
            (base, history.after(revision.max(history.through()), usize::MAX))
        });
        let rows = |writes: Vec<_>| {
            let writes: Vec<std::sync::Arc<_>> = writes;
            writes.iter().map(|write| Row::from(&**write)).collect()
        };
        Since { base: base.map(rows), rows: rows(writes) }
    }

    /// The lines of an object in YAML, as it was at a revision, with the values of Secrets hidden, and whether it was gone then;
    /// `None` where it is not known.
    #[must_use]
    pub fn lines(&self, collection: &str, key: &str, at: Revision) -> Option<(Vec<String>, bool)> {
        let found = self.history(|history| history.of(collection, key, at));
        let write = found.first()?;
        let (_, lines) = fields::lines(&Secrets::Hidden.shown(collection, write.object()));
        Some((lines.into_iter().map(|line| line.text).collect(), write.did == Did::Delete))
    }

    /// The reconciles that a recording has.
    #[must_use]
    pub fn recorded_reconciles(&self) -> Vec<ReconcileRow> {
        self.besides().reconciles.iter().map(ReconcileRow::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{config_map, write};

    #[test]
    fn writes_of_watches_are_numbered_as_they_come() {
        let view = View::of_watches("a cluster");
        let revisions = [write(900, Did::Create, "default/a"), write(7, Did::Create, "default/b")]
            .map(|one| view.note(one));
        assert_eq!(revisions, [Revision(1), Revision(2)]);
        let since = view.since(Revision(1));
        assert!(since.base.is_none());
        let keys: Vec<&str> = since.rows.iter().map(|row| &*row.key).collect();
        assert_eq!(keys, ["default/b"]);
    }

    #[test]
    fn an_object_is_shown_as_it_was_then() {
        let view = View::of_watches("a cluster");
        for (did, text) in [(Did::Create, "one"), (Did::Update, "two"), (Did::Delete, "two")] {
            view.note(config_map(0, did, "default/a", text));
        }
        let at = |revision| view.lines("/configmaps", "default/a", Revision(revision)).expect("known");
        assert!(at(1).0.contains(&"  text: one".to_owned()) && !at(1).1);
        assert!(at(3).0.contains(&"  text: two".to_owned()) && at(3).1, "gone");
        assert_eq!(view.lines("/configmaps", "default/b", Revision(3)), None);
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        let view = View::of_watches("a cluster");
        let mut secret = config_map(1, Did::Create, "default/a", "hunter2");
        secret.collection = "/secrets".into();
        view.note(secret);
        let (lines, _) = view.lines("/secrets", "default/a", Revision(1)).expect("known");
        assert!(!lines.concat().contains("hunter2"), "{lines:?}");
    }
}
