//! Feature gates, from the metrics of a server: `gates.txt`.

use std::collections::BTreeSet;

const METRIC: &str = "kubernetes_feature_enabled{";

/// A line for each gate: name, stage (ALPHA, BETA, DEPRECATED, or GA), whether it is on by default.
pub(super) fn write(metrics: &str) -> String {
    let gates: BTreeSet<String> = metrics.lines().filter_map(gate).collect();
    let lines: String = gates.into_iter().map(|line| line + "\n").collect();
    format!("#\n# name stage on-or-off\n{lines}")
}

fn gate(line: &str) -> Option<String> {
    let (labels, value) = line.strip_prefix(METRIC)?.split_once("} ")?;
    let label = |name: &str| {
        let found = labels.split(',').find_map(|one| one.trim().strip_prefix(name)?.strip_prefix("=\""))?;
        found.strip_suffix('"')
    };
    let stage = Some(label("stage")?).filter(|stage| !stage.is_empty()).unwrap_or("GA");
    let name = label("name")?;
    // Switches of many gates at once are no gates.
    let is_gate = !matches!(name, "AllAlpha" | "AllBeta");
    is_gate.then(|| format!("{name} {stage} {}", if value == "1" { "on" } else { "off" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_has_a_stage_and_a_default() {
        let metrics = "# HELP kubernetes_feature_enabled x\n\
            kubernetes_feature_enabled{name=\"B\",stage=\"ALPHA\"} 0\n\
            kubernetes_feature_enabled{name=\"A\",stage=\"\"} 1\nother{name=\"A\",stage=\"\"} 1\n";
        assert!(write(metrics).ends_with("off\nA GA on\nB ALPHA off\n"), "{}", write(metrics));
    }
}
