//! `docs/conformance.md`: every test with its result, and what others say of themselves.

use std::fmt::Write as _;

use super::{
    RELEASE,
    classes::{Class, Test},
    results::{Results, Verdict},
};

pub(super) const PAGE: &str = "docs/conformance.md";

const HEAD: &str = "# Kubernetes' conformance tests

`cargo xtask conformance` runs the conformance tests of Kubernetes on Kubewright, without a container engine, and writes this page: each
test with its last result and the day of it. `--classes`, `--only` and `--failed` choose tests, and leave the results of the others. The
reports, in JUnit's form too, and all logs are left in `target/conformance`. The tests are of four classes, by what they need; A and S run on
`kubewright up --nodes 2`, P and X on `kubewright up --runtime process` and images made of what packages and Go modules have (or those of `--image-store`).
";

const PEERS: &str = "
## Beside others

| | tests | passed | with | source |
|---|---|---|---|---|
| rusternetes | 441 of v1.35 | 415 (2026-04-26) | Docker | [its docs/CONFORMANCE.md](https://github.com/calfonso/rusternetes/blob/main/docs/CONFORMANCE.md) |
| kwok | | no figure is known to us | a control plane of Kubernetes; nodes and pods are simulated | [its documentation](https://kwok.sigs.k8s.io/) |
| envtest | | no figure is known to us | kube-apiserver and etcd, without a kubelet and controllers | [its documentation](https://book.kubebuilder.io/reference/envtest) |

These are counts of different suites on different machines; no other was run for this table.
";

/// The page.
pub(super) fn render(tests: &[Test], results: &Results) -> String {
    let mut page = HEAD.to_owned();
    // Writing to a String does not fail.
    let _ = writeln!(page, "\nThe tests are those of Kubernetes v{RELEASE}.\n");
    page += "| class | needs | tests | passed | failed | interrupted | not run |\n|---|---|---|---|---|---|---|\n";
    for class in Class::ALL {
        let of_class = tests.iter().filter(|test| test.class == class);
        let _ = writeln!(page, "| {} | {} | {} |", class.letter(), class.needs(), counts(of_class, results));
    }
    let _ = writeln!(page, "| all | | {} |", counts(tests.iter(), results));
    page += PEERS;
    for class in Class::ALL {
        let _ = writeln!(page, "\n## Class {}: {}\n", class.letter(), class.needs());
        page += "| result | day | test |\n|---|---|---|\n";
        for test in tests.iter().filter(|test| test.class == class) {
            let (result, date) = match results.of(&test.name) {
                Some(outcome) => (shown(outcome.verdict), outcome.date.as_str()),
                None => ("not run".to_owned(), ""),
            };
            let name = test.name.replace('|', "\\|");
            let name = name.strip_suffix(" [Conformance]").unwrap_or(&name);
            let _ = writeln!(page, "| {result} | {date} | `{name}` |");
        }
    }
    page
}

/// A verdict, so that nobody overlooks one that is not good.
fn shown(verdict: Verdict) -> String {
    match verdict {
        Verdict::Passed => verdict.word().to_owned(),
        Verdict::Failed | Verdict::Interrupted => format!("**{}**", verdict.word()),
    }
}

/// How many tests there are, how many of each verdict, and how many without, as cells of a table.
fn counts<'a>(tests: impl Iterator<Item = &'a Test>, results: &Results) -> String {
    let verdicts: Vec<Option<Verdict>> =
        tests.map(|test| results.of(&test.name).map(|outcome| outcome.verdict)).collect();
    let of = |one: Option<Verdict>| verdicts.iter().filter(|verdict| **verdict == one).count();
    let [passed, failed, interrupted] = Verdict::ALL.map(|verdict| of(Some(verdict)));
    format!("{} | {passed} | {failed} | {interrupted} | {}", verdicts.len(), of(None))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::classes, *};
    use crate::run::workspace;

    #[test]
    fn the_page_is_what_the_results_say() {
        let read = |file: &str| fs::read_to_string(workspace().join(file)).expect("a file");
        let results = Results::parse(&read(super::super::results::FILE)).expect("a table");
        let tests = classes::all().expect("a table");
        assert_eq!(read(PAGE), render(&tests, &results), "cargo xtask conformance --page writes it");
    }

    #[test]
    fn a_test_that_did_not_run_is_neither_passed_nor_failed() {
        let tests = [Test { class: Class::Api, name: "a [Conformance]".into() }];
        let page = render(&tests, &Results::default());
        assert!(page.contains("| all | | 1 | 0 | 0 | 0 | 1 |\n"));
        assert!(page.contains("| not run |  | `a` |\n"));
        let failed = Results::parse("failed\t2026-11-28\ta [Conformance]\n").expect("a table");
        assert!(render(&tests, &failed).contains("| **failed** | 2026-11-28 | `a` |\n"));
        let cut = Results::parse("interrupted\t2026-11-28\ta [Conformance]\n").expect("a table");
        let page = render(&tests, &cut);
        assert!(page.contains("| all | | 1 | 0 | 0 | 1 | 0 |\n"), "it is told as what it is");
        assert!(page.contains("| **interrupted** | 2026-11-28 | `a` |\n"));
    }
}
