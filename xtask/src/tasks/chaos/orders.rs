//! Orders through three services while everything around them breaks.

use anyhow::Result;

use crate::phases::run;
use crate::tasks::packages::server_packages;
use crate::workspace::cargo;

/// Builds the run of orders and starts it with `arguments`. It is built as tests are, with all assertions.
pub(super) fn orders(arguments: &[String]) -> Result<()> {
    eprintln!("{}", server_packages()?);
    // The transports other than RabbitMQ are features, which take their time to build.
    let named =
        |feature: &&str| arguments.iter().any(|argument| argument.trim_start_matches("--transport=") == *feature);
    let features: Vec<&str> = ["kafka", "sqs"].into_iter().filter(named).collect();
    let package = ["--package", "saga-chaos", "--features", &features.join(",")];
    run(cargo().arg("build").args(package))?;
    run(cargo().arg("run").args(package).args(["--bin", "saga-chaos", "--"]).args(arguments))
}
