//! The folder that a benchmark writes to: on a real disk, because a commit that costs nothing measures nothing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::clock::Stopwatch;

const FLUSHES: usize = 51;
const FLUSHED_BYTES: usize = 8 * 1024;

/// A fresh folder below `parent`, or below the build folder if none is given. A folder in memory is refused.
pub(crate) fn folder(parent: Option<&Path>) -> Result<TempDir> {
    let parent = parent.map_or_else(build_folder, Path::to_path_buf);
    fs::create_dir_all(&parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
    let kind = file_system(&parent);
    if kind.as_deref().is_some_and(|kind| kind == "tmpfs" || kind == "ramfs") {
        bail!(
            "{} lies in memory, where a commit costs nothing; name a folder on a disk with --folder",
            parent.display()
        );
    }
    tempfile::Builder::new()
        .prefix("saga-bench-")
        .tempdir_in(&parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))
}

/// The kind of file system that `folder` lies on, where the system tells.
pub(crate) fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        Some((PathBuf::from(fields.next()?), fields.next()?.to_owned()))
    });
    let around = mounts.filter(|(point, _)| folder.starts_with(point));
    around.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, kind)| kind)
}

/// What one small durable write costs on the disk below `folder`: the median of a few.
pub(crate) fn flush_time(folder: &Path) -> Result<Duration> {
    let mut file = File::create(folder.join("flush"))?;
    let block = [7_u8; FLUSHED_BYTES];
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let watch = Stopwatch::started();
        file.write_all(&block).and_then(|()| file.sync_data()).context("cannot flush a file")?;
        times.push(watch.elapsed());
    }
    times.sort_unstable();
    Ok(times[FLUSHES / 2])
}

fn build_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench")
}
