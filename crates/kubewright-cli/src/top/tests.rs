//! The screen, drawn on a terminal of a test.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use kubewright_cluster::recording::{Did, Revision, Write, Writer};
use kubewright_view::{ReconcileRow, View};
use ratatui_core::{backend::TestBackend, style::Modifier, terminal::Terminal};
use serde_json::{Value, json};

use super::{
    draw::draw,
    model::Model,
    screen::{Act, Screen},
    source::unknown,
};

/// Somebody in front of a terminal of so many columns and lines.
struct Somebody {
    view: View,
    model: Model,
    screen: Screen,
    terminal: Terminal<TestBackend>,
}

impl Somebody {
    fn at(columns: u16, lines: u16) -> Self {
        let terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
        let view = View::of_watches("https://cluster");
        Self { view, model: Model::new("https://cluster"), screen: Screen::default(), terminal }
    }

    /// A write of an object: its kind, its key, what owns it, and its status.
    fn write(&mut self, did: Did, [kind, key, owner]: [&str; 3], status: &Value) -> Revision {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let mut object = json!({"kind": kind, "status": status,
            "metadata": {"name": name, "namespace": namespace, "uid": format!("{kind} {key}")}});
        if !owner.is_empty() {
            object["metadata"]["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
        }
        self.view.note(Write {
            revision: Revision(0),
            time: Timestamp::UNIX_EPOCH,
            by: Writer { user: String::new(), program: "kubectl".to_owned() },
            did,
            collection: format!("/{kind}").into(),
            key: key.into(),
            bytes: object.to_string().into(),
        })
    }

    fn look(&mut self) {
        self.model.follow(self.view.since(self.model.revision()));
        self.screen.look(&self.model);
    }

    fn press(&mut self, code: KeyCode) -> Act {
        let height = self.terminal.size().expect("a size").height;
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        let act = self.screen.press(key, &self.model, usize::from(height));
        if let Act::Show(object) = &act {
            let found = self.view.lines(&object.collection, &object.key, Revision(object.revision));
            self.screen.show(&object.title, found);
        }
        act
    }

    fn type_in(&mut self, text: &str) {
        text.chars().for_each(|c| drop(self.press(KeyCode::Char(c))));
    }

    /// The lines that are shown, `>` before the one that is selected.
    fn lines(&mut self) -> Vec<String> {
        self.terminal.draw(|frame| draw(&self.screen, &self.model, frame)).expect("drawn");
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        buffer
            .content
            .chunks(width)
            .map(|line| {
                let is_selected = line[0].modifier.contains(Modifier::REVERSED);
                let text: String = line.iter().map(ratatui_core::buffer::Cell::symbol).collect();
                format!("{}{}", if is_selected { ">" } else { "" }, text.trim_end())
            })
            .collect()
    }

    /// The lines of the list.
    fn list(&mut self) -> Vec<String> {
        let lines = self.lines();
        lines[1..lines.len() - 1].iter().filter(|line| !line.is_empty()).cloned().collect()
    }
}

fn phase(phase: &str) -> Value {
    json!({"phase": phase})
}

/// A shop with an application of which a part fails.
fn shop() -> Somebody {
    let mut somebody = Somebody::at(60, 9);
    somebody.write(Did::Create, ["App", "shop/web", ""], &phase("Active"));
    somebody.write(Did::Create, ["Part", "shop/web-1", "App shop/web"], &phase("Failed"));
    somebody.write(Did::Create, ["Part", "shop/web-2", "App shop/web"], &phase("Active"));
    somebody.write(Did::Create, ["Lease", "kube-system/l", ""], &json!({}));
    somebody.look();
    somebody
}

#[test]
fn the_tree_has_objects_below_their_owners_with_their_states() {
    let mut somebody = shop();
    let lines = somebody.lines();
    assert!(
        lines[0].starts_with("[Tree] Timeline  https://cluster  4 objects  ✗ 1  ◐ 0  ● 2"),
        "{}",
        lines[0]
    );
    assert_eq!(
        somebody.list(),
        [
            ">▾ ○ shop  3",
            "  ▾ ● App web  Active",
            "      ✗ Part web-1  Failed",
            "      ● Part web-2  Active",
            "▸ ○ kube-system  1",
        ]
    );
}

#[test]
fn what_is_folded_shows_the_worst_state_in_it() {
    let mut somebody = shop();
    somebody.press(KeyCode::Down);
    somebody.press(KeyCode::Left);
    assert_eq!(somebody.list(), ["▾ ○ shop  3", ">  ▸ ✗ App web  Active", "▸ ○ kube-system  1"]);
    somebody.press(KeyCode::Right);
    somebody.press(KeyCode::Right);
    assert_eq!(somebody.list()[2], ">      ✗ Part web-1  Failed");
    somebody.press(KeyCode::Left);
    assert_eq!(somebody.list()[1], ">  ▾ ● App web  Active", "left goes to the owner");
}

#[test]
fn the_selected_object_stays_selected_when_others_come_and_go() {
    let mut somebody = shop();
    (0..3).for_each(|_| drop(somebody.press(KeyCode::Down)));
    somebody.write(Did::Create, ["App", "shop/about", ""], &phase("Pending"));
    somebody.write(Did::Delete, ["Part", "shop/web-1", "App shop/web"], &phase("Failed"));
    somebody.look();
    assert_eq!(
        somebody.list(),
        [
            "▾ ○ shop  3",
            "    ◐ App about  Pending",
            "  ▾ ● App web  Active",
            ">      ● Part web-2  Active",
            "▸ ○ kube-system  1",
        ]
    );
}

#[test]
fn a_long_list_moves_with_what_is_selected() {
    let mut somebody = Somebody::at(60, 7);
    for number in 0..50 {
        somebody.write(Did::Create, ["Part", &format!("shop/{number:02}"), ""], &phase("Active"));
    }
    somebody.look();
    somebody.press(KeyCode::End);
    assert_eq!(somebody.list().last().map(String::as_str), Some(">    ● Part 49  Active"));
    somebody.press(KeyCode::PageUp);
    let list = somebody.list();
    assert!(list.len() == 5 && list[2] == ">    ● Part 45  Active", "{list:?}");
}

#[test]
fn a_search_shows_what_has_all_words_and_its_owners() {
    let mut somebody = shop();
    somebody.press(KeyCode::Char('/'));
    somebody.type_in("FAILED part q?");
    assert_eq!(somebody.list(), ["No object is as you search."], "what is typed is no command");
    (0..3).for_each(|_| drop(somebody.press(KeyCode::Backspace)));
    assert_eq!(somebody.list(), [">▾ ○ shop  2", "  ▾ ● App web  Active", "      ✗ Part web-1  Failed"]);
    somebody.press(KeyCode::Enter);
    assert!(somebody.lines()[8].starts_with("/FAILED part"));
    somebody.press(KeyCode::Esc);
    assert_eq!(somebody.list().len(), 5);
}

#[test]
fn events_are_shown_where_they_are_wanted() {
    let mut somebody = shop();
    somebody.write(Did::Create, ["Event", "shop/e", ""], &json!({}));
    somebody.look();
    let has_event = |list: Vec<String>| list.iter().any(|line| line.contains("Event e"));
    assert!(!has_event(somebody.list()));
    somebody.press(KeyCode::Char('e'));
    assert!(has_event(somebody.list()));
}

#[test]
fn an_object_is_shown_in_yaml_as_it_is_and_on_the_timeline_as_it_was() {
    let mut somebody = Somebody::at(60, 12);
    somebody.write(Did::Create, ["App", "shop/web", ""], &phase("Pending"));
    somebody.write(Did::Update, ["App", "shop/web", ""], &phase("Active"));
    somebody.look();
    somebody.press(KeyCode::Down);
    somebody.press(KeyCode::Enter);
    assert_eq!(somebody.lines()[0], "App shop/web  Esc goes back");
    assert!(somebody.list().contains(&"  phase: Active".to_owned()), "{:?}", somebody.list());
    somebody.press(KeyCode::Esc);
    somebody.press(KeyCode::Tab);
    somebody.press(KeyCode::Down);
    assert_eq!(
        somebody.list(),
        [
            "01-01 00:00:00.000  ~ update   App shop/web  ● Active  by ku",
            ">01-01 00:00:00.000  + create   App shop/web  ◐ Pending  by k",
        ]
    );
    somebody.press(KeyCode::Enter);
    assert!(somebody.list().contains(&"  phase: Pending".to_owned()), "{:?}", somebody.list());
}

#[test]
fn what_was_there_at_first_is_in_the_tree_and_not_on_the_timeline() {
    let mut somebody = Somebody::at(60, 9);
    let first = somebody.write(Did::Create, ["App", "shop/web", ""], &phase("Active"));
    somebody.model.was_there(first);
    somebody.look();
    assert_eq!(somebody.list().len(), 2);
    somebody.press(KeyCode::Tab);
    assert_eq!(somebody.list(), ["Nothing has happened since you look."]);
}

/// What a control plane says of reconciles, latest first.
fn answer(keys: &[(&str, &str, bool)]) -> Value {
    let reconciles: Vec<Value> = keys
        .iter()
        .map(|(key, began, failed)| {
            let outcome = if *failed { "it is bad\nvery" } else { "done" };
            json!({"key": key, "began": began, "reasons": "App changed", "outcome": outcome, "failed": failed,
                "tookSeconds": 0.0025, "accessesLeftOut": 2, "accesses": [
                    {"verb": "patch", "resource": "example.org/apps/status", "key": key, "refused": 409}]})
        })
        .collect();
    json!({"controllers": [{"controller": "apps", "userAgent": "app/1", "reconciles": reconciles}]})
}

#[test]
fn reconciles_stand_among_the_writes_at_their_time() {
    let mut somebody = shop();
    let rows = unknown(&answer(&[("shop/web", "1970-01-01T00:00:01Z", true)]), &mut BTreeSet::new());
    somebody.model.reconciled(rows);
    somebody.press(KeyCode::Tab);
    assert_eq!(somebody.list()[0], ">01-01 00:00:01.000  ! reconcile apps shop/web  it is bad  2.");
    somebody.press(KeyCode::Enter);
    somebody.press(KeyCode::Down);
    let shown = somebody.list();
    assert!(
        shown.contains(&"reasons: App changed".to_owned()) && shown.contains(&"  very".to_owned()),
        "{shown:?}"
    );
    somebody.press(KeyCode::End);
    let shown = somebody.list();
    let read_and_written =
        ["read and written:", "  patch example.org/apps/status shop/web: refused with 409", "  and 2 more"];
    assert!(
        shown.iter().map(String::as_str).filter(|line| read_and_written.contains(line)).eq(read_and_written),
        "{shown:?}"
    );
}

#[test]
fn a_reconcile_that_an_earlier_answer_had_is_not_listed_again() {
    let mut known = BTreeSet::new();
    let keys = |rows: Vec<ReconcileRow>| rows.into_iter().map(|row| row.key).collect::<Vec<_>>();
    let (a, b, c) = (
        ("s/a", "1970-01-01T00:00:01Z", false),
        ("s/b", "1970-01-01T00:00:02Z", false),
        ("s/a", "1970-01-01T00:00:03Z", true),
    );
    assert_eq!(keys(unknown(&answer(&[b, a]), &mut known)), ["s/a", "s/b"]);
    assert_eq!(keys(unknown(&answer(&[c, b, a]), &mut known)), ["s/a"]);
    assert_eq!(keys(unknown(&json!("nonsense"), &mut known)), [""; 0]);
}

#[test]
fn names_that_are_markup_or_steer_a_terminal_are_text() {
    let mut somebody = Somebody::at(70, 9);
    let name = "shop/<b>\u{1b}[2J\u{7}\u{202e}\nx";
    somebody.write(Did::Create, ["App", name, ""], &phase("\u{1b}]0;owned\u{7}"));
    somebody.look();
    assert_eq!(somebody.list()[1], "    ◐ App <b>�[2J���x  �]0;owned�");
    somebody.press(KeyCode::Tab);
    assert!(somebody.list()[0].contains("shop/<b>�[2J���x  ◐ �]0;owned�"), "{:?}", somebody.list());
    somebody.press(KeyCode::Enter);
    let shown = somebody.lines().concat();
    assert!(!shown.contains(char::is_control) && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn help_is_one_key_away_and_q_leaves() {
    let mut somebody = Somebody::at(100, 20);
    somebody.press(KeyCode::Char('?'));
    assert!(somebody.list().iter().any(|line| line.starts_with("q, Ctrl-C ")));
    assert_eq!(somebody.press(KeyCode::Char('q')), Act::Nothing, "it goes back first");
    assert_eq!(somebody.press(KeyCode::Char('q')), Act::Quit);
    let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(somebody.screen.press(key, &somebody.model, 20), Act::Quit);
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    for (columns, lines) in [(1, 1), (1, 3), (3, 2), (10, 4)] {
        let mut somebody = shop();
        somebody.terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
        for code in
            [KeyCode::End, KeyCode::PageDown, KeyCode::Tab, KeyCode::Enter, KeyCode::Right, KeyCode::End]
        {
            somebody.press(code);
            assert_eq!(somebody.lines().len(), usize::from(lines));
        }
    }
}

#[test]
fn keys_on_an_empty_screen_do_nothing() {
    let mut somebody = Somebody::at(60, 9);
    for code in [
        KeyCode::Down,
        KeyCode::Enter,
        KeyCode::Left,
        KeyCode::End,
        KeyCode::Tab,
        KeyCode::Down,
        KeyCode::Enter,
    ] {
        assert_eq!(somebody.press(code), Act::Nothing);
    }
    assert_eq!(somebody.list(), ["Nothing has happened since you look."]);
}
