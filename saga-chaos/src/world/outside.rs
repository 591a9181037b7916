use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use order_rig::outside::LateCalls;
use saga_servers::{FaultProxy, ProcessGroup, Signal};

use super::Programs;

/// The gateway and the carrier, as a process of their own, which lives through everything.
#[derive(Debug)]
pub(crate) struct Outside {
    _process: ProcessGroup,
    /// The replicas reach them through it.
    pub(crate) proxy: FaultProxy,
    /// Their book.
    pub(crate) book: PathBuf,
}

impl Outside {
    /// Starts them; what befalls a call is decided by the seed.
    pub(crate) async fn start(
        programs: &Programs,
        folder: &Path,
        store: &str,
        seed: u64,
        held_per_mille: u32,
        late_calls: LateCalls,
    ) -> anyhow::Result<Self> {
        let (seed, held) = (seed.to_string(), held_per_mille.to_string());
        let mut args = vec!["outside", "--listen", "127.0.0.1:0", "--journal", "--store", store];
        args.extend(["--seed", &seed, "--hold", &held]);
        if late_calls == LateCalls::CarriedOut {
            args.push("--no-bar");
        }
        let mut command = programs.replica(folder, &args);
        command.stdout(Stdio::piped()).stderr(File::create(folder.join("outside.log"))?);
        let mut process = ProcessGroup::spawn(command, Signal::Kill)?;
        let mut line = String::new();
        let out = process.take_stdout().context("the services outside have no standard output")?;
        BufReader::new(out).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("the services outside did not start")?;
        let proxy = FaultProxy::start(url).await?;
        let name = order_rig::place::PostgresPlace::parse(store)?;
        let book = folder.join(order_rig::place::Place::outside(&name));
        Ok(Self { _process: process, proxy, book })
    }
}
