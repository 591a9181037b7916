//! Test programs side by side: most of them wait most of the time, for a server, a lease or a poll.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use saga_servers::{ProcessGroup, Signal};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::phases::{now, shown};

/// How long a job may take before it counts as hung. The longest take a few minutes.
const JOB_TIME_MAX: Duration = Duration::from_mins(20);

/// The same for a job in the background, which gives way to all others.
const BACKGROUND_JOB_TIME_MAX: Duration = Duration::from_mins(80);

/// One program to be run.
#[derive(Debug)]
pub(super) struct Job {
    /// What its output stands under.
    pub(super) title: String,
    pub(super) command: Command,
    /// If it takes longer, it is killed with all that it started in its group.
    time_max: Duration,
}

/// A job that came to its end.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) title: String,
    status: ExitStatus,
    /// The time that it had, if it was killed since it did not end within it.
    hung: Option<Duration>,
    pub(super) took: Duration,
    /// What it printed, standard error in its place between the lines of standard output.
    pub(super) output: String,
}

/// Jobs that wait. Several calls of [`side_by_side`] may take from it.
pub(super) type Queue = RefCell<VecDeque<Job>>;

/// These jobs, in their order.
pub(super) fn queue(jobs: Vec<Job>) -> Queue {
    RefCell::new(jobs.into())
}

/// Runs all jobs of `waiting`, in their order, `lanes` at a time, and tells `report` of each as it ends, with its output whole.
///
/// Dropped, what runs is ended.
pub(super) async fn side_by_side(waiting: &Queue, lanes: usize, mut report: impl FnMut(Ended)) -> Result<()> {
    let mut running = JoinSet::new();
    loop {
        while running.len() < lanes.max(1)
            && let Some(job) = waiting.borrow_mut().pop_front()
        {
            running.spawn(job.run());
        }
        let Some(ended) = running.join_next().await else { return Ok(()) };
        report(ended.context("a job was not run to its end")??);
    }
}

impl Job {
    pub(super) fn new(title: String, command: Command) -> Self {
        Self { title, command, time_max: JOB_TIME_MAX }
    }

    /// The same job, which gives way to every other program.
    pub(super) fn in_background(self) -> Self {
        Self { command: giving_way(&self.command), time_max: BACKGROUND_JOB_TIME_MAX, ..self }
    }

    async fn run(mut self) -> Result<Ended> {
        let name = shown(&self.command);
        // A file, not a pipe: what a program leaves running would keep a pipe open.
        let mut output = tempfile::tempfile().context("cannot make a file for the output")?;
        let to_output = || output.try_clone().map(Stdio::from).context("cannot share the file for the output");
        self.command.stdin(Stdio::null()).stdout(to_output()?).stderr(to_output()?);
        let begun = now();
        let mut group = ProcessGroup::spawn(self.command, Signal::Term)?;
        let (status, hung) = if let Ok(status) = timeout(self.time_max, group.wait()).await {
            (status?, None)
        } else {
            group.kill().await?;
            (group.wait().await?, Some(self.time_max))
        };
        let took = begun.elapsed();
        let output = read_whole(&mut output).with_context(|| format!("cannot read what `{name}` printed"))?;
        Ok(Ended { title: self.title, status, hung, took, output })
    }
}

impl Ended {
    pub(super) fn is_success(&self) -> bool {
        self.status.success() && self.hung.is_none()
    }

    /// How it ended, in words.
    pub(super) fn how(&self) -> String {
        match self.hung {
            Some(time) => format!("it hung: it did not end within {} s, and was killed", time.as_secs()),
            None => self.status.to_string(),
        }
    }
}

/// The same command, with the lowest priority.
pub(super) fn giving_way(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    nice.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    nice
}

/// Both streams share one position in the file, so it goes back to the beginning first.
fn read_whole(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use super::{Ended, Job, queue, side_by_side};

    fn job(title: &str, script: &str, folder: &Path) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        Job::new(title.to_owned(), command)
    }

    async fn run(jobs: Vec<Job>, lanes: usize) -> Vec<Ended> {
        let mut ended = Vec::new();
        side_by_side(&queue(jobs), lanes, |job| ended.push(job)).await.unwrap();
        ended
    }

    #[tokio::test]
    async fn each_output_stays_whole_and_a_failure_lets_the_others_run() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = vec![
            job("bad", "echo out; echo err >&2; echo again; exit 3", folder.path()),
            job("good", "echo fine", folder.path()),
        ];
        let ended = run(jobs, 1).await;
        let told: Vec<_> =
            ended.iter().map(|job| (job.title.as_str(), job.status.code(), job.output.as_str())).collect();
        assert_eq!(told, [("bad", Some(3), "out\nerr\nagain\n"), ("good", Some(0), "fine\n")]);
    }

    /// Each waits for what the other does, so neither ends unless both run; the third needs a free lane.
    #[tokio::test]
    async fn as_many_run_at_once_as_there_are_lanes() {
        let folder = tempfile::tempdir().unwrap();
        let (left, right) = (folder.path().join("left"), folder.path().join("right"));
        let made = Command::new("mkfifo").args([&left, &right]).status().unwrap();
        assert!(made.success());
        let jobs = vec![
            job("one", "echo > left; read line < right", folder.path()),
            job("two", "read line < left; test ! -e third || echo beside two others; echo > right", folder.path()),
            job("three", "echo > third", folder.path()),
        ];
        let ended = run(jobs, 2).await;
        assert!(ended.iter().all(|job| job.is_success() && job.output.is_empty()), "{ended:?}");
        assert!(ended.len() == 3 && folder.path().join("third").exists());
    }

    /// Each waits for what the other does, so neither call has both.
    #[tokio::test]
    async fn calls_share_the_jobs_of_a_queue() {
        let folder = tempfile::tempdir().unwrap();
        let (left, right) = (folder.path().join("left"), folder.path().join("right"));
        let made = Command::new("mkfifo").args([&left, &right]).status().unwrap();
        assert!(made.success());
        let jobs = queue(vec![
            job("one", "echo > left; read line < right", folder.path()),
            job("two", "read line < left; echo > right", folder.path()),
        ]);
        let ended = RefCell::new(Vec::new());
        let report = |job: Ended| ended.borrow_mut().push(job.title);
        tokio::try_join!(side_by_side(&jobs, 1, report), side_by_side(&jobs, 1, report)).unwrap();
        assert_eq!(ended.into_inner().len(), 2);
    }

    #[tokio::test]
    async fn a_job_in_the_background_is_the_same_job_with_the_lowest_priority() {
        let folder = tempfile::tempdir().unwrap();
        let mut job = job("quiet", "nice; pwd -P; echo $COLOUR", folder.path());
        job.command.env("COLOUR", "blue");
        let ended = run(vec![job.in_background()], 1).await;
        let expected = format!("19\n{}\nblue\n", folder.path().canonicalize().unwrap().display());
        assert_eq!((ended[0].title.as_str(), ended[0].output.as_str()), ("quiet", expected.as_str()));
    }

    #[tokio::test]
    async fn a_job_that_hangs_is_killed_with_all_that_it_started_and_its_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut hangs = job("hangs", "sleep 1000 & echo $!; wait", folder.path());
        hangs.time_max = Duration::from_secs(5);
        let ended = run(vec![hangs, job("good", "echo fine", folder.path())], 1).await;
        assert!(!ended[0].is_success() && ended[0].how().contains("did not end within 5 s"), "{ended:?}");
        assert!(ended[1].is_success() && ended[1].how().contains("exit status: 0"), "{ended:?}");
        let sleeper: u32 = ended[0].output.trim().parse().expect("the id that it printed");
        let command_line = std::fs::read(format!("/proc/{sleeper}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command_line).contains("1000"), "it goes on sleeping");
    }

    #[tokio::test]
    async fn what_cannot_be_run_is_an_error() {
        let jobs = vec![Job::new("none".to_owned(), Command::new("/nowhere/none"))];
        assert!(side_by_side(&queue(jobs), 2, drop).await.is_err());
    }
}
