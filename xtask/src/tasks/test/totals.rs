//! How many tests passed.

/// The sums of the `test result:` lines.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    pub(super) fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else {
            return;
        };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    pub(super) fn note(&self) -> String {
        format!("{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn the_result_lines_are_summed() {
        let mut totals = Totals::default();
        totals.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        totals.add("test 7 passed; of nothing");
        assert_eq!(totals.note(), "14 passed, 1 failed, 1 ignored");
    }
}
