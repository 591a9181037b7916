use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, bail};

use super::finish;

/// More than any run writes. Memory is taken only for what is written.
const ROOM: &str = "4g";
/// Beyond what is used already: nothing at all would be less than what is being written just now.
const ROOM_LEFT_KIB: u64 = 8;
const SHRINKS_MAX: u32 = 50;

/// Mounts the folder and takes it away when its owner is gone, however that ended.
const KEEPER: &str = r#"mount -t tmpfs -o "size=$2,uid=$3,mode=0700" tmpfs "$1" || exit 1
echo mounted
read -r _
umount -l "$1""#;

/// A file system of its own that can be made full.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    folder: PathBuf,
    keeper: Child,
}

impl SmallDisk {
    /// Mounts one in a new folder below `parent`, for the owner of `like`.
    ///
    /// # Errors
    ///
    /// The system refuses to mount, as it does without root.
    pub(crate) fn mount(parent: &Path, like: &Path) -> anyhow::Result<Self> {
        let folder = parent.join("small");
        std::fs::create_dir_all(&folder)?;
        let owner = std::fs::metadata(like)?.uid().to_string();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&folder).args([ROOM, &owner]);
        // A group of its own, so that Ctrl-C leaves it to do its work.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn().context("cannot run `sh`")?;
        let mut said = String::new();
        if let Some(out) = keeper.stdout.take() {
            BufReader::new(out).read_line(&mut said)?;
        }
        if said.trim() == "mounted" {
            return Ok(Self { folder, keeper });
        }
        let mut why = String::new();
        if let Some(mut errors) = keeper.stderr.take() {
            errors.read_to_string(&mut why)?;
        }
        keeper.wait()?;
        bail!("cannot mount a file system: {}", why.trim())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// From now on nothing more fits.
    pub(crate) async fn fill(&self) -> anyhow::Result<()> {
        for _ in 0..SHRINKS_MAX {
            let mut df = Command::new("df");
            df.args(["-k", "--output=used"]).arg(&self.folder);
            let said = finish(df).await?;
            let used = String::from_utf8_lossy(&said.stdout).lines().nth(1).and_then(|line| line.trim().parse().ok());
            let used: u64 = used.context("`df` does not say how much is used")?;
            // What was written meanwhile may be more than that: then the system refuses, and it is tried again.
            if self.resize(&format!("{}k", used + ROOM_LEFT_KIB)).await?.status.success() {
                return Ok(());
            }
        }
        bail!("the file system did not become full")
    }

    /// There is room again.
    pub(crate) async fn make_room(&self) -> anyhow::Result<()> {
        let done = self.resize(ROOM).await?;
        if !done.status.success() {
            bail!("the file system stays full: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(())
    }

    async fn resize(&self, size: &str) -> anyhow::Result<Output> {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,size={size}")]).arg(&self.folder);
        finish(mount).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its end of the pipe closes, so that it takes the folder away.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the system does not allow mounts, the reason is given instead.
    #[tokio::test]
    async fn what_is_full_takes_nothing_until_there_is_room() {
        let parent = tempfile::tempdir().expect("a folder");
        let disk = match SmallDisk::mount(parent.path(), parent.path()) {
            Ok(disk) => disk,
            Err(error) => {
                println!("not tried: {error:#}");
                assert!(error.to_string().contains("cannot mount a file system: mount"), "{error:#}");
                return;
            }
        };
        let write = |name: &str| std::fs::write(disk.folder().join(name), vec![1; 1 << 20]);
        write("before").expect("there is room");
        disk.fill().await.expect("it can be made full");
        assert_eq!(write("meanwhile").expect_err("it is full").kind(), std::io::ErrorKind::StorageFull);
        disk.make_room().await.expect("it can be given room");
        write("after").expect("there is room again");
        let folder = disk.folder().to_path_buf();
        drop(disk);
        assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 0, "it is unmounted");
    }
}
