//! `kubewright top`: what happens in a cluster, or has happened in a recording, on a terminal.

mod draw;
mod model;
mod screen;
mod source;
mod terminal;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::StreamExt;
use kubewright_cluster::recording::Revision;
use kubewright_serve::signals::Signals;
use kubewright_view::View;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use tokio::time::{MissedTickBehavior, interval};

use self::{
    model::Model,
    screen::{Act, Screen},
    source::{Source, Update},
    terminal::FullScreen,
};
use crate::{access::ClusterArgs, record::kinds::Wanted};

/// How often what has happened is drawn.
const DRAWN: Duration = Duration::from_millis(100);

/// What `kubewright top` takes.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// A recording, in the place of a cluster
    #[arg(value_name = "FILE", conflicts_with_all = ["kubeconfig", "context", "namespace", "kinds"])]
    file: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    wanted: Wanted,
}

/// Shows it until `q`, Ctrl-C or a signal.
///
/// # Errors
/// In one line, when the terminal is its own again: this is no terminal, the file is no recording, or the cluster cannot be read.
pub(crate) async fn top(args: &TopArgs) -> anyhow::Result<()> {
    terminal::needed()?;
    let mut signals = Signals::listen()?;
    let (view, source) = match &args.file {
        Some(file) => (recorded(file)?, Source::none()),
        None => {
            let access = args.cluster.access().await?;
            let source = Source::of_cluster(&access.client, &args.wanted).await?;
            (View::of_watches(access.server.to_string()), source)
        }
    };
    tokio::select! {
        () = signals.next() => Ok(()),
        shown = show(&view, source) => shown,
    }
}

fn recorded(file: &Path) -> anyhow::Result<View> {
    let (recording, besides) = crate::view::read(file)?;
    Ok(View::of_recording(&recording, besides, file.display().to_string()))
}

/// Draws, reads keys and follows, until somebody has seen enough.
async fn show(view: &View, mut source: Source) -> anyhow::Result<()> {
    let _full_screen = FullScreen::enter()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout())).context("the terminal")?;
    let (mut model, mut screen) = (Model::new(view.title()), Screen::default());
    model.reconciled(view.recorded_reconciles());
    let mut keys = EventStream::new();
    let mut tick = interval(DRAWN);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut has_changed, mut is_stale) = (true, true);
    loop {
        tokio::select! {
            biased;
            event = keys.next() => {
                is_stale = true;
                let Some(event) = event else { bail!("the terminal is gone") };
                if let Event::Key(key) = event.context("the terminal")?
                    && key.kind != KeyEventKind::Release
                {
                    let height = terminal.size().context("the terminal")?.height;
                    match screen.press(key, &model, usize::from(height)) {
                        Act::Nothing => {}
                        Act::Quit => return Ok(()),
                        Act::Show(object) => {
                            let found = view.lines(&object.collection, &object.key, Revision(object.revision));
                            screen.show(&object.title, found);
                        }
                    }
                }
            }
            update = source.next() => match update? {
                Update::Write { write, is_first } => {
                    let revision = view.note(write);
                    if is_first {
                        model.was_there(revision);
                    }
                    has_changed = true;
                }
                Update::Reconciles(rows) => {
                    model.reconciled(rows);
                    is_stale = true;
                }
                Update::Note(note) => {
                    model.note = note;
                    is_stale = true;
                }
            },
            _ = tick.tick() => {
                if std::mem::take(&mut has_changed) {
                    model.follow(view.since(model.revision()));
                    screen.look(&model);
                    is_stale = true;
                }
            }
        }
        // What happens waits for the tick; who presses a key does not.
        if std::mem::take(&mut is_stale) {
            terminal.draw(|frame| draw::draw(&screen, &model, frame)).context("the terminal")?;
        }
    }
}
