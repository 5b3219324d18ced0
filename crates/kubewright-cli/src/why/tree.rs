//! A report for people: a tree of objects, with causes, evidence and what to do.

use std::fmt::Write;

use kubewright_why::{Finding, Node, Report};

use crate::printer::{BOLD, DIM, GREEN, RED, painted};

/// The report in lines. A healthy object is one line.
pub(super) fn describe(report: &Report, colours: bool) -> String {
    let mut text = String::new();
    let namespace = &report.object.id.namespace;
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    let title = painted(&format!("{}{place}", report.object.id), BOLD, colours);
    if report.healthy {
        let state = if report.object.state.is_empty() {
            String::new()
        } else {
            format!(" ({})", report.object.state)
        };
        let _ = writeln!(text, "{} {title}{state}: nothing is wrong with it", painted("✓", GREEN, colours));
    } else {
        let _ = writeln!(text, "{title}{}", state(&report.object));
        if !report.owners.is_empty() {
            let owners: Vec<String> = report.owners.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                text,
                "{}",
                painted(&format!("owned by {}", owners.join(", that by ")), DIM, colours)
            );
        }
        below(&mut text, &report.object, "", colours);
    }
    for unread in &report.unread {
        let line = format!("not read: {}: {}", unread.what, unread.why);
        let _ = writeln!(text, "{}", painted(&line, DIM, colours));
    }
    text
}

fn state(node: &Node) -> String {
    let alike = match node.alike {
        0 => String::new(),
        more => format!(" (and {more} more like it)"),
    };
    let state = if node.state.is_empty() { String::new() } else { format!("  {}", node.state) };
    format!("{state}{alike}")
}

/// The causes of an object, and what is below it, behind a prefix.
fn below(text: &mut String, node: &Node, prefix: &str, colours: bool) {
    let bar = if node.children.is_empty() { "  " } else { "│ " };
    for finding in &node.findings {
        describe_finding(text, finding, &format!("{prefix}{bar}"), colours);
    }
    for (number, child) in node.children.iter().enumerate() {
        let (branch, rest) =
            if number + 1 == node.children.len() { ("└─", "   ") } else { ("├─", "│  ") };
        let place = if child.id.namespace.is_empty() || child.id.namespace == node.id.namespace {
            String::new()
        } else {
            format!(" -n {}", child.id.namespace)
        };
        let _ = writeln!(text, "{prefix}{branch} {}{place}{}", child.id, state(child));
        below(text, child, &format!("{prefix}{rest}"), colours);
    }
}

fn describe_finding(text: &mut String, finding: &Finding, prefix: &str, colours: bool) {
    let mark = painted("✗", RED, colours);
    let cause = painted(finding.cause.name(), BOLD, colours);
    let _ = writeln!(text, "{prefix}{mark} {cause}: {}", finding.message);
    for line in &finding.evidence {
        let _ = writeln!(text, "{prefix}    {}", painted(line, DIM, colours));
    }
    let _ = writeln!(text, "{prefix}  -> {}", finding.next);
}
