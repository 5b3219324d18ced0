//! Compares our libraries with those in Go that kube-apiserver is made of, by cases that it makes out of seeds.
//! `cargo xtask differ --libraries` runs it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it waits in real time, and prints what it finds"
)]

mod dice;
mod findings;
mod go;
mod shrink;
mod subjects;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::Value;

use crate::dice::Dice;
use crate::findings::{Difference, Example, Findings};
use crate::go::Go;
use crate::subjects::{SUBJECTS, Subject};

/// How many cases are asked at once.
const TOGETHER: usize = 200;

/// Compare our libraries with those in Go that kube-apiserver is made of
#[derive(Parser)]
struct Options {
    /// The program that answers by the libraries in Go
    #[arg(long)]
    go: PathBuf,
    /// Which seeds, the last one not: each is a case of each subject
    #[arg(long, default_value = "0..1000", value_parser = seeds)]
    seeds: std::ops::Range<u64>,
    /// What to compare (all)
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// End after this many minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// How many cases of each sort of difference are shown
    #[arg(long, default_value_t = 2)]
    show: usize,
}

fn seeds(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("give A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let range = number(from)?..number(to)?;
    if range.is_empty() { Err(format!("{text} has no seed in it")) } else { Ok(range) }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let chosen = chosen(&options.subjects)?;
    let mut go = Go::start(&options.go)?;
    let end = Instant::now() + Duration::from_secs(options.minutes * 60);
    let mut differing = 0;
    for subject in chosen {
        differing += compare(subject, &mut go, &options, end)
            .with_context(|| format!("comparing {}", subject.name))?;
    }
    if differing > 0 {
        bail!("{differing} cases differ");
    }
    Ok(())
}

/// The subjects of these names; all where there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Subject>> {
    if names.is_empty() {
        return Ok(SUBJECTS.iter().collect());
    }
    let find = |name: &String| {
        let known = || SUBJECTS.iter().map(|subject| subject.name).collect::<Vec<_>>().join(", ");
        SUBJECTS
            .iter()
            .find(|subject| subject.name == name)
            .with_context(|| format!("{name} is none of {}", known()))
    };
    names.iter().map(find).collect()
}

/// Compares the cases of a subject, and prints what differs. Returns how many do.
fn compare(subject: &Subject, go: &mut Go, options: &Options, end: Instant) -> Result<usize> {
    let mut findings = Findings::default();
    let (mut compared, mut left_out) = (0, 0);
    let mut seeds = options.seeds.clone().peekable();
    while seeds.peek().is_some() && Instant::now() < end {
        let cases: Vec<Value> = seeds
            .by_ref()
            .take(TOGETHER)
            .map(|seed| (subject.make)(&mut Dice::of(subject.name, seed)))
            .collect();
        for (case, theirs) in cases.iter().zip(go.answer(subject.name, &cases)?) {
            match subject.judge(case, &theirs) {
                Judgement::Same => compared += 1,
                Judgement::LeftOut => left_out += 1,
                Judgement::Differs(difference) => {
                    compared += 1;
                    findings.add(Example { case: case.clone(), difference });
                }
            }
        }
    }
    println!(
        "{}: {compared} cases, {} differ in {} ways, {left_out} are none",
        subject.name,
        findings.count(),
        findings.sorts()
    );
    for (sort, cases) in findings.sorted() {
        println!("  {} x {sort}", cases.count);
        for found in cases.examples.iter().take(options.show) {
            let Example { case, difference } = shrink::shrink(subject, go, found)?;
            println!("    case {case}\n      go   {}\n      ours {}", difference.go, difference.ours);
        }
    }
    Ok(findings.count())
}

/// What comes of comparing a case.
enum Judgement {
    /// Both say the same.
    Same,
    /// It is no case: what Go needs for it is not there, such as a good schema, or Go panics.
    LeftOut,
    /// They do not.
    Differs(Difference),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_always_the_same_case() {
        for subject in SUBJECTS {
            let case = |seed| (subject.make)(&mut Dice::of(subject.name, seed));
            assert_eq!(case(7), case(7), "{}", subject.name);
            assert!((0..50).any(|seed| case(seed) != case(seed + 1)), "{}", subject.name);
        }
    }

    /// `recorded.jsonl`: cases that were answered otherwise once, with what Go says of them.
    #[test]
    fn what_once_differed_is_answered_as_go_does() {
        let mut differ = Vec::new();
        for line in include_str!("recorded.jsonl").lines() {
            let recorded: Value = serde_json::from_str(line).expect("a line of JSON");
            let subject =
                SUBJECTS.iter().find(|subject| recorded["subject"] == subject.name).expect("a subject");
            match subject.judge(&recorded["case"], &recorded["go"]) {
                Judgement::Same => {}
                Judgement::LeftOut => differ.push(format!("no case: {line}")),
                Judgement::Differs(difference) => {
                    differ.push(format!("{line}\n  go   {}\n  ours {}", difference.go, difference.ours));
                }
            }
        }
        assert!(differ.is_empty(), "{} cases differ:\n{}", differ.len(), differ.join("\n"));
    }

    #[test]
    fn what_both_say_alike_is_the_same_in_any_order_of_their_errors() {
        let subject = &SUBJECTS[0];
        let ours = (subject.answer)(&(subject.make)(&mut Dice::of(subject.name, 1)));
        let case = (subject.make)(&mut Dice::of(subject.name, 1));
        assert!(matches!(subject.judge(&case, &ours), Judgement::Same));
        assert!(matches!(subject.judge(&case, &serde_json::json!({"other": 1})), Judgement::Differs(_)));
    }
}
