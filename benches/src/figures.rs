//! Numbers and their table.

/// The figures of one thing that was measured several times, or not at all.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn add(&mut self, figure: f64) {
        let at = self.0.partition_point(|other| *other < figure);
        self.0.insert(at, figure);
    }

    /// The middle one, or the lower of the two in the middle.
    fn median(&self) -> Option<f64> {
        self.0.get(self.0.len().checked_sub(1)? / 2).copied()
    }

    /// `12.3 (11.9 to 14.0)`.
    fn told(&self) -> String {
        match (self.median(), self.0.first(), self.0.last()) {
            (Some(median), Some(least), Some(most)) if self.0.len() > 1 => {
                format!("{median:.1} ({least:.1} to {most:.1})")
            }
            (Some(median), ..) => format!("{median:.1}"),
            _ => "not measured".to_owned(),
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row([String; 6]);

impl Row {
    pub(crate) fn new(what: &str, unit: &str, goal: Option<f64>, ours: &Figures, theirs: &Figures) -> Self {
        let ratio = match (ours.median(), theirs.median()) {
            (Some(ours), Some(theirs)) if ours > 0.0 => format!("{:.1} times", theirs / ours),
            _ => String::new(),
        };
        let goal = goal.map_or_else(String::new, |goal| format!("{goal:.0}"));
        Self([what.to_owned(), unit.to_owned(), goal, ours.told(), theirs.told(), ratio])
    }
}

/// The rows as a Markdown table: medians, with the least and the most.
pub(crate) fn table(rows: &[Row]) -> String {
    let head =
        ["what", "unit", "goal", "kubewright", "reference", "reference / kubewright"].map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows.iter().map(|row| &row.0));
    let width = |column: usize| all().map(|cells| cells[column].len()).max().unwrap_or_default();
    let line = |cells: &[String; 6]| {
        let cells =
            cells.iter().enumerate().map(|(column, cell)| format!(" {cell:width$} ", width = width(column)));
        format!("|{}|\n", cells.collect::<Vec<_>>().join("|"))
    };
    let rule: String = (0..head.len()).map(|column| format!("|{}", "-".repeat(width(column) + 2))).collect();
    let body: String = rows.iter().map(|row| line(&row.0)).collect();
    format!("{}{rule}|\n{body}", line(&head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(all: &[f64]) -> Figures {
        let mut figures = Figures::default();
        all.iter().for_each(|figure| figures.add(*figure));
        figures
    }

    #[test]
    fn the_median_does_not_heed_the_order() {
        assert_eq!(figures(&[3.0, 1.0, 2.0]).told(), "2.0 (1.0 to 3.0)");
        assert_eq!(figures(&[4.0, 1.0, 2.0, 3.0]).median(), Some(2.0));
        assert_eq!(figures(&[1.25]).told(), "1.2");
        assert_eq!(Figures::default().told(), "not measured");
    }

    #[test]
    fn a_ratio_is_given_where_both_sides_were_measured() {
        let rows = [
            Row::new("start", "ms", Some(30.0), &figures(&[10.0]), &figures(&[1500.0])),
            Row::new("memory", "MiB", None, &figures(&[20.0]), &Figures::default()),
        ];
        let table = table(&rows);
        assert!(table.contains("150.0 times"), "{table}");
        assert_eq!(table.matches("times").count(), 1, "{table}");
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    }
}
