//! The screen as lines: a pure function of what is known and of what somebody looks at.

use jiff::Timestamp;
use kubewright_cluster::recording::Did;
use kubewright_view::{ReconcileRow, Row, State};
use ratatui_core::{
    layout::Rect,
    style::{Color, Modifier, Style},
    terminal::Frame,
    text::{Line, Span},
};

use super::{
    model::{Model, What},
    screen::{Screen, Tab, Text, Visible},
};

const HELP: [&str; 16] = [
    "up, down, k, j     go through the list; also PageUp, PageDown, Home, End",
    "left, right        fold and unfold; move an object to the side",
    "Enter              show the object in YAML; on the timeline as it was after the write",
    "/                  search by kind, namespace, name, state, reason or program; Esc ends it",
    "Tab                the tree, the timeline",
    "e                  show events, or not",
    "?                  this",
    "q, Ctrl-C          leave",
    "",
    "● ready   ◐ progressing   ✗ failing   ○ its kind does not say",
    "What is folded has the worst state in it.",
    "",
    "Values of Secrets are hidden. Times are in UTC.",
    "A cluster of `kubewright up --admin` has the reconciles of operators on Kubewright's SDK, too.",
    "",
    "Any key goes back.",
];

/// Draws all of it.
pub(super) fn draw(screen: &Screen, model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.height < 3 || area.width == 0 {
        return;
    }
    let height = usize::from(area.height) - 2;
    let lines = if screen.is_help {
        HELP.iter().map(|line| Line::raw(*line)).collect()
    } else if let Some(text) = &screen.text {
        text_lines(text, height)
    } else if screen.tab == Tab::Tree {
        tree(screen, height)
    } else {
        timeline(screen, model, height)
    };
    put(frame, 0, head(screen, model));
    for (place, line) in lines.into_iter().take(height).enumerate() {
        put(frame, u16::try_from(place + 1).unwrap_or(u16::MAX), line);
    }
    put(frame, area.height - 1, foot(screen, model));
}

fn put(frame: &mut Frame<'_>, y: u16, line: Line<'_>) {
    let area = frame.area();
    frame.render_widget(line, Rect { y, height: 1, ..area });
}

/// What comes of a cluster, as text that does nothing to a terminal: what would steer it, or turn the direction of a line, is shown
/// as `�`.
pub(super) fn plain(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// A time, as `01-31 12:00:00.000`.
pub(super) fn moment(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| "?".to_owned(), |time| time.strftime("%m-%d %H:%M:%S%.3f").to_string())
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dot(state: State) -> Span<'static> {
    match state {
        State::Ready => Span::styled("●", Color::Green),
        State::Progressing => Span::styled("◐", Color::Yellow),
        State::Failing => Span::styled("✗", Color::Red),
        State::Plain => Span::styled("○", dim()),
    }
}

fn head(screen: &Screen, model: &Model) -> Line<'static> {
    if let Some(text) = &screen.text {
        return Line::styled(format!("{}  Esc goes back", plain(&text.title)), bold());
    }
    let count =
        |state: State| model.objects().filter(|row| row.kind != "Event" && row.state == state).count();
    let tab =
        |tab: Tab, name: &str| if screen.tab == tab { format!("[{name}]") } else { format!(" {name} ") };
    let mut spans = vec![
        Span::styled(format!("{}{} ", tab(Tab::Tree, "Tree"), tab(Tab::Timeline, "Timeline")), bold()),
        Span::raw(format!("{}  {} objects", plain(&model.title), model.objects().count())),
    ];
    for state in [State::Failing, State::Progressing, State::Ready] {
        spans.extend([Span::raw("  "), dot(state), Span::raw(format!(" {}", count(state)))]);
    }
    Line::from(spans)
}

fn foot(screen: &Screen, model: &Model) -> Line<'static> {
    if screen.is_searching || !screen.search.is_empty() {
        let end =
            if screen.is_searching { "█  Enter keeps it, Esc ends it" } else { "  Esc ends the search" };
        return Line::raw(format!("/{}{end}", plain(&screen.search)));
    }
    let keys = "? help  / search  Tab tree or timeline  Enter YAML  q leave";
    let note = if model.note.is_empty() { String::new() } else { format!("{}  ", plain(&model.note)) };
    Line::from(vec![Span::styled(note, Color::Yellow), Span::styled(keys, dim())])
}

/// The part of a list in which the selected line is, as near to the middle as there are lines around it.
fn window(selected: usize, of: usize, height: usize) -> std::ops::Range<usize> {
    let from = selected.saturating_sub(height / 2).min(of.saturating_sub(height));
    from..of.min(from + height)
}

fn marked(line: Line<'static>, is_selected: bool) -> Line<'static> {
    if is_selected { line.patch_style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
}

fn tree(screen: &Screen, height: usize) -> Vec<Line<'static>> {
    let visible = screen.visible();
    if visible.is_empty() {
        let why =
            if screen.search.is_empty() { "There are no objects." } else { "No object is as you search." };
        return vec![Line::raw(why)];
    }
    let selected = screen.line(&visible);
    window(selected, visible.len(), height)
        .map(|place| marked(tree_line(&visible[place]), place == selected))
        .collect()
}

fn tree_line(line: &Visible<'_>) -> Line<'static> {
    let node = line.node;
    let fold = match (node.children.is_empty(), line.is_open) {
        (true, _) => " ",
        (false, true) => "▾",
        (false, false) => "▸",
    };
    let mut spans = vec![
        Span::raw(format!("{}{fold} ", "  ".repeat(line.depth))),
        dot(if line.is_open { node.state } else { node.below }),
        Span::raw(" "),
    ];
    match &node.row {
        Some(row) => {
            spans.push(Span::styled(format!("{} ", plain(&row.kind)), dim()));
            spans.push(Span::raw(plain(&node.name)));
            spans.push(Span::styled(format!("  {}", plain(&row.message)), dim()));
        }
        None => {
            spans.push(Span::styled(plain(&node.name), bold()));
            spans.push(Span::styled(format!("  {}", node.count), dim()));
        }
    }
    Line::from(spans)
}

fn timeline(screen: &Screen, model: &Model, height: usize) -> Vec<Line<'static>> {
    let moments = screen.moments(model);
    if moments.is_empty() {
        let why = if screen.search.is_empty() {
            "Nothing has happened since you look."
        } else {
            "Nothing that happened is as you search."
        };
        return vec![Line::raw(why)];
    }
    let selected = screen.moment(&moments);
    window(selected, moments.len(), height)
        .map(|place| {
            let entry = moments[place];
            let time = Span::styled(format!("{}  ", moment(entry.time())), dim());
            let mut spans = vec![time];
            match &entry.what {
                What::Write(row) => write(row, &mut spans),
                What::Reconcile(row) => reconcile(row, &mut spans),
            }
            marked(Line::from(spans), place == selected)
        })
        .collect()
}

fn write(row: &Row, spans: &mut Vec<Span<'static>>) {
    let (did, colour) = match row.did {
        Did::Create => ("+ create   ", Color::Green),
        Did::Update => ("~ update   ", Color::Blue),
        Did::Delete => ("- delete   ", Color::Red),
    };
    let who = [&row.program, &row.user].into_iter().find(|who| !who.is_empty());
    let who = who.map_or_else(String::new, |who| format!("  by {}", plain(who)));
    spans.push(Span::styled(did, colour));
    spans.push(Span::raw(format!("{} {}  ", plain(&row.kind), plain(&row.key))));
    if row.did != Did::Delete {
        spans.push(dot(row.state));
    }
    spans.push(Span::raw(format!(" {}", plain(&row.message))));
    spans.push(Span::styled(who, dim()));
}

fn reconcile(row: &ReconcileRow, spans: &mut Vec<Span<'static>>) {
    let style = if row.failed { Style::new().fg(Color::Red) } else { Style::new().fg(Color::Cyan) };
    let mark = if row.failed { "! reconcile" } else { "↻ reconcile" };
    spans.push(Span::styled(mark, style));
    let outcome = row.outcome.lines().next().unwrap_or_default();
    spans.push(Span::raw(format!(" {} {}  {}", plain(&row.controller), plain(&row.key), plain(outcome))));
    spans.push(Span::styled(format!("  {} ms  {}", row.took, plain(&row.reasons)), dim()));
}

fn text_lines(text: &Text, height: usize) -> Vec<Line<'static>> {
    let cut = |line: &String| Line::raw(plain(line).chars().skip(text.left).collect::<String>());
    text.lines.iter().skip(text.top).take(height).map(cut).collect()
}
