//! Which run is meant.

use anyhow::{Result, bail};

use super::orders::orders;
use super::reservations::reservations;

const RESERVATIONS: &str = "reservations";

/// Runs orders, or reservations if they are named first.
pub(crate) fn chaos(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, arguments)) if name == RESERVATIONS => reservations(arguments),
        // It would be built before it refuses this.
        Some((name, _)) if !name.starts_with('-') => {
            bail!(
                "there is no run '{name}'; `cargo xtask chaos` runs orders, `cargo xtask chaos {RESERVATIONS}` reservations"
            )
        }
        _ => orders(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::chaos;

    #[test]
    fn a_run_that_is_misspelled_is_named() {
        let error = chaos(&["resevations".to_owned()]).expect_err("there is no such run").to_string();
        assert!(error.contains("'resevations'") && error.contains("chaos reservations"), "{error}");
    }
}
