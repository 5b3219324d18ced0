//! The program that answers by the libraries in Go.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use kubewright_codec::json;
use serde_json::Value;

/// It runs until it is dropped.
pub(crate) struct Go {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Go {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let questions = child.stdin.take().context("its input")?;
        let answers = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, questions, answers })
    }

    /// What it says of cases of a subject.
    ///
    /// # Errors
    /// It has ended, or answers otherwise than with a line of JSON.
    pub(crate) fn answer(&mut self, subject: &str, cases: &[Value]) -> Result<Vec<Value>> {
        let (questions, answers) = (&mut self.questions, &mut self.answers);
        std::thread::scope(|scope| {
            let asked = scope.spawn(move || -> std::io::Result<()> {
                let mut questions = BufWriter::new(questions);
                for case in cases {
                    writeln!(questions, "{}", serde_json::json!({"subject": subject, "case": case}))?;
                }
                questions.flush()
            });
            let mut line = String::new();
            let mut read = Vec::with_capacity(cases.len());
            for _ in cases {
                line.clear();
                ensure!(answers.read_line(&mut line)? > 0, "the program in Go has ended");
                let answer = json::decode(line.as_bytes()).map_err(|why| anyhow!("reading {line}: {why}"))?;
                read.push(answer.value);
            }
            asked.join().expect("writing cases does not panic")?;
            Ok(read)
        })
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
