//! The report as JUnit's XML: a test for each check.

use std::fmt::Write;

use super::{Report, escaped};
use crate::finding::{Check, Severity};

impl Report {
    /// As JUnit's XML. Errors and warnings that the baseline does not have fail; notes, and what costs requests alone, are printed.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut cases = String::new();
        let mut failures = 0;
        for check in Check::ALL {
            let found: Vec<_> =
                self.findings.iter().filter(|one| one.finding.check == check && !one.is_known).collect();
            let _ = write!(
                cases,
                "  <testcase classname=\"{}\" name=\"{}\">",
                escaped(&self.operator),
                escaped(check.promise())
            );
            for one in found {
                let text = format!("{}\n{}", self.again(one), one.finding.timeline.join("\n"));
                let (message, text) = (escaped(&one.finding.message), escaped(&text));
                let fails = one.severity > Severity::Note && !check.is_of_cost();
                if !fails {
                    let _ = write!(cases, "\n    <system-out>{message}</system-out>");
                } else {
                    let _ = write!(
                        cases,
                        "\n    <failure type=\"{}\" message=\"{message}\">{text}</failure>",
                        check.name()
                    );
                }
                failures += usize::from(fails);
            }
            cases += "</testcase>\n";
        }
        let tests = Check::ALL.len();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kubewright trial\" tests=\"{tests}\" failures=\"{failures}\" \
             errors=\"0\" time=\"{:.3}\">\n{cases}</testsuite>\n",
            self.seconds
        )
    }
}
