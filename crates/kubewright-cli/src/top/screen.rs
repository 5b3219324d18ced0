//! What somebody looks at, and what a key makes of it: no terminal is touched here.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use kubewright_view::{Node, ReconcileRow, Row, tree};

use super::model::{Entry, Model, What};

/// Lines of the terminal that show none of the list.
const AROUND: usize = 2;
/// The most characters of what is searched.
const LONGEST: usize = 120;
/// So many columns a text moves to the side.
const ASIDE: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Tree,
    Timeline,
}

/// A text over everything: an object, or the details of a reconcile.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    /// The first line and column that are shown.
    pub(super) top: usize,
    pub(super) left: usize,
}

/// What is to be done outside.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Quit,
    /// Show an object as it was at a revision.
    Show(Wanted),
}

/// An object that somebody wants to see.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) title: String,
    pub(super) collection: String,
    pub(super) key: String,
    pub(super) revision: u64,
}

/// A line of the tree that can be seen.
pub(super) struct Visible<'a> {
    pub(super) node: &'a Node,
    pub(super) depth: usize,
    pub(super) is_open: bool,
    /// The place of what it is in.
    parent: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) tab: Tab,
    pub(super) search: String,
    /// Whether what is typed is searched.
    pub(super) is_searching: bool,
    /// Whether events are among the objects.
    has_events: bool,
    pub(super) is_help: bool,
    pub(super) text: Option<Text>,
    tree: Vec<Node>,
    /// What was folded or unfolded by hand.
    folds: BTreeMap<String, bool>,
    selected: Option<String>,
    /// The number of what is selected on the timeline; none for the newest.
    moment: Option<u64>,
}

impl Screen {
    /// Makes the tree of the objects anew.
    pub(super) fn look(&mut self, model: &Model) {
        let words = words(&self.search);
        let keep = |row: &Row| (self.has_events || row.kind != "Event") && has_all(&words, || described(row));
        self.tree = tree(model.objects(), keep);
    }

    /// The lines of the tree that are not folded away.
    pub(super) fn visible(&self) -> Vec<Visible<'_>> {
        let mut lines = Vec::new();
        self.unfold(&self.tree, 0, None, &mut lines);
        lines
    }

    fn unfold<'a>(
        &self,
        nodes: &'a [Node],
        depth: usize,
        parent: Option<usize>,
        into: &mut Vec<Visible<'a>>,
    ) {
        for node in nodes {
            let is_open = !node.children.is_empty() && self.is_open(node, depth);
            let place = into.len();
            into.push(Visible { node, depth, is_open, parent });
            if is_open {
                self.unfold(&node.children, depth + 1, Some(place), into);
            }
        }
    }

    /// As on the page: what the cluster has for itself is folded at first, and all that is found is unfolded.
    fn is_open(&self, node: &Node, depth: usize) -> bool {
        if !self.search.is_empty() {
            return true;
        }
        let at_first =
            node.row.is_some() || (depth == 0 && node.id != "cluster" && !node.name.starts_with("kube-"));
        self.folds.get(&node.id).copied().unwrap_or(at_first)
    }

    /// The line that is selected; the first, where what was selected is not to be seen.
    pub(super) fn line(&self, visible: &[Visible<'_>]) -> usize {
        let is_selected = |line: &Visible<'_>| Some(&line.node.id) == self.selected.as_ref();
        visible.iter().position(is_selected).unwrap_or(0)
    }

    /// What happened and is searched, newest first.
    pub(super) fn moments<'a>(&self, model: &'a Model) -> Vec<&'a Entry> {
        let words = words(&self.search);
        let is_wanted = |entry: &&Entry| match &entry.what {
            What::Write(row) => {
                (self.has_events || row.kind != "Event") && has_all(&words, || described(row))
            }
            What::Reconcile(row) => has_all(&words, || reconcile(row)),
        };
        model.entries().rev().filter(is_wanted).collect()
    }

    /// The line of the timeline that is selected.
    pub(super) fn moment(&self, moments: &[&Entry]) -> usize {
        let is_selected = |entry: &&Entry| Some(entry.number) == self.moment;
        moments.iter().position(is_selected).unwrap_or(0)
    }

    /// Shows an object, which `found` has the lines of.
    pub(super) fn show(&mut self, title: &str, found: Option<(Vec<String>, bool)>) {
        let (lines, gone) = found.unwrap_or_else(|| (vec!["It is not known any more.".to_owned()], false));
        let title = if gone { format!("{title} (gone)") } else { title.to_owned() };
        self.text = Some(Text { title, lines, ..Text::default() });
    }

    /// What a key does, on a terminal of so many lines.
    pub(super) fn press(&mut self, key: KeyEvent, model: &Model, height: usize) -> Act {
        let page = height.saturating_sub(AROUND + 1).max(1);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control {
            return if key.code == KeyCode::Char('c') { Act::Quit } else { Act::Nothing };
        }
        if self.is_help {
            self.is_help = false;
            return Act::Nothing;
        }
        if self.is_searching {
            self.type_search(key.code, model);
            return Act::Nothing;
        }
        if self.text.is_some() {
            self.read(key.code, page);
            return Act::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('?') => self.is_help = true,
            KeyCode::Char('/') => self.is_searching = true,
            KeyCode::Char('e') => {
                self.has_events = !self.has_events;
                self.look(model);
            }
            KeyCode::Esc => self.search_for(String::new(), model),
            KeyCode::Tab => {
                self.tab = if self.tab == Tab::Tree { Tab::Timeline } else { Tab::Tree };
            }
            code if self.tab == Tab::Tree => return self.walk(code, page),
            code => return self.go(code, model, page),
        }
        Act::Nothing
    }

    fn type_search(&mut self, code: KeyCode, model: &Model) {
        match code {
            KeyCode::Esc => {
                self.is_searching = false;
                self.search_for(String::new(), model);
            }
            KeyCode::Enter => self.is_searching = false,
            KeyCode::Backspace => {
                let mut search = self.search.clone();
                search.pop();
                self.search_for(search, model);
            }
            KeyCode::Char(typed) if self.search.chars().count() < LONGEST && !typed.is_control() => {
                self.search_for(format!("{}{typed}", self.search), model);
            }
            _ => {}
        }
    }

    fn search_for(&mut self, search: String, model: &Model) {
        self.search = search;
        self.look(model);
    }

    /// A key while a text is shown.
    fn read(&mut self, code: KeyCode, page: usize) {
        let Some(text) = &mut self.text else { return };
        let last = text.lines.len().saturating_sub(page);
        match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => self.text = None,
            KeyCode::Left => text.left = text.left.saturating_sub(ASIDE),
            KeyCode::Right => {
                let longest = text.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
                text.left = (text.left + ASIDE).min(longest.saturating_sub(1));
            }
            code => text.top = moved(code, text.top, last, page).unwrap_or(text.top),
        }
    }

    /// A key in the tree.
    fn walk(&mut self, code: KeyCode, page: usize) -> Act {
        let visible = self.visible();
        let at = self.line(&visible);
        let Some(line) = visible.get(at) else { return Act::Nothing };
        let id = line.node.id.clone();
        let is_leaf = line.node.children.is_empty();
        let (mut next, mut fold) = (at, None);
        match code {
            KeyCode::Left if line.is_open => fold = Some(false),
            KeyCode::Left => next = line.parent.unwrap_or(at),
            KeyCode::Right if !line.is_open && !is_leaf => fold = Some(true),
            KeyCode::Right => next = (at + 1).min(visible.len() - 1),
            KeyCode::Char(' ') if !is_leaf => fold = Some(!line.is_open),
            KeyCode::Enter => {
                if let Some(row) = &line.node.row {
                    return Act::Show(wanted(row, u64::MAX));
                }
                fold = (!is_leaf).then_some(!line.is_open);
            }
            code => next = moved(code, at, visible.len() - 1, page).unwrap_or(at),
        }
        self.selected = Some(visible[next].node.id.clone());
        if let Some(is_open) = fold {
            self.folds.insert(id, is_open);
        }
        Act::Nothing
    }

    /// A key on the timeline.
    fn go(&mut self, code: KeyCode, model: &Model, page: usize) -> Act {
        let moments = self.moments(model);
        let at = self.moment(&moments);
        let Some(entry) = moments.get(at) else { return Act::Nothing };
        if code == KeyCode::Enter {
            match &entry.what {
                What::Write(row) => return Act::Show(wanted(row, row.revision)),
                What::Reconcile(row) => {
                    let (title, lines) = details(row);
                    self.text = Some(Text { title, lines, ..Text::default() });
                }
            }
            return Act::Nothing;
        }
        let next = moved(code, at, moments.len() - 1, page).unwrap_or(at);
        // The first line stays the newest, whatever comes.
        self.moment = (next > 0).then(|| moments[next].number);
        Act::Nothing
    }
}

/// Where a key leads in a list; none, if it is not one of those.
fn moved(code: KeyCode, at: usize, last: usize, page: usize) -> Option<usize> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown => (at + page).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => return None,
    })
}

fn wanted(row: &Row, revision: u64) -> Wanted {
    Wanted {
        title: format!("{} {}", row.kind, row.key),
        collection: row.collection.clone(),
        key: row.key.clone(),
        revision,
    }
}

fn details(row: &ReconcileRow) -> (String, Vec<String>) {
    let title = format!("{} reconciled {}", row.controller, row.key);
    let mut lines = vec![
        format!("began:   {}", super::draw::moment(row.time)),
        format!("waited:  {} ms", row.waited),
        format!("took:    {} ms", row.took),
        format!("by:      {} {}", row.program, row.user),
        format!("reasons: {}", row.reasons),
        "outcome:".to_owned(),
    ];
    lines.extend(row.outcome.lines().map(|line| format!("  {line}")));
    if !row.accesses.is_empty() {
        lines.push("read and written:".to_owned());
        lines.extend(row.accesses.iter().map(|access| format!("  {access}")));
    }
    if row.accesses_left_out > 0 {
        lines.push(format!("  and {} more", row.accesses_left_out));
    }
    (title, lines)
}

fn words(search: &str) -> Vec<String> {
    search.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

fn has_all(words: &[String], text: impl FnOnce() -> String) -> bool {
    if words.is_empty() {
        return true;
    }
    let text = text().to_lowercase();
    words.iter().all(|word| text.contains(word))
}

fn described(row: &Row) -> String {
    format!("{} {} {} {:?} {} {}", row.kind, row.key, row.message, row.state, row.user, row.program)
}

fn reconcile(row: &ReconcileRow) -> String {
    format!("reconcile {} {} {} {} {}", row.controller, row.key, row.reasons, row.outcome, row.program)
}
