use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use saga_core::Saga;
use saga_core::machine::differences;
use saga_core::step::{Payload, Step};
use saga_core::store::Store;

use super::file::{Damage, End, File, GoldenError, Run};
use super::play::{record, replay};

/// A definition with what its steps return, to be held against a golden file.
pub struct Golden<S: Store, I> {
    saga: Saga<S, I>,
    input: String,
    returned: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl<S: Store, I: Payload> Golden<S, I> {
    /// A saga that is started with this input.
    pub fn of(saga: &Saga<S, I>, input: &I) -> Self {
        let (mut golden, input) = (
            Self { saga: saga.clone(), input: String::new(), returned: BTreeMap::new(), problems: Vec::new() },
            serde_json::to_string(input),
        );
        match input {
            Ok(input) => golden.input = input,
            Err(error) => golden.problems.push(format!("the input cannot be stored: {error}")),
        }
        golden
    }

    /// Says what a step returns, or every item of one that is done for each of a list. Steps that return `()` need not be
    /// named. A signal is named as [`Received<T>`](saga_core::Received); where it is not, none arrives.
    #[must_use]
    pub fn returns<T: Step>(mut self, output: &T::Output) -> Self {
        match T::OUTPUT.encode(output) {
            Ok(output) => _ = self.returned.insert(T::NAME.to_owned(), String::from_utf8_lossy(&output).into_owned()),
            Err(error) => self.problems.push(format!("what `{}` returns cannot be stored: {error}", T::NAME)),
        }
        self
    }

    /// Lets each saga of the file go on to its end, as the definition is now. With `UPDATE_GOLDEN` in the environment the
    /// file is made first, where it is missing or of the same steps.
    ///
    /// # Errors
    /// What differs, and what to do about it.
    ///
    /// # Cancel safety
    /// It only reads, unless it makes the file: then that is written whole or not at all, as far as the file system does so.
    pub async fn check(&self, path: impl AsRef<Path>) -> Result<(), GoldenError> {
        let path = path.as_ref();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            self.record(path).await?;
        }
        self.verify(path).await
    }

    /// The same, whatever is in the environment: the file is only read.
    ///
    /// # Errors
    /// Those of [`check`](Golden::check).
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn verify(&self, path: impl AsRef<Path>) -> Result<(), GoldenError> {
        let path = path.as_ref();
        let file = File::read(path)?;
        self.check_definition(path, &file)?;
        let mut damages = Vec::new();
        for run in &file.runs {
            for stand in &run.stands {
                let ended = replay(&self.saga, &file.input, &file.returned, run.rejects.as_deref(), stand).await;
                if let Some(problem) = difference(&run.end, ended, self.saga.has_branches()) {
                    let rejects =
                        run.rejects.as_ref().map(|step| format!(", where `{step}` rejects")).unwrap_or_default();
                    damages.push(Damage { stand: format!("{}{rejects}", stand.before), problem });
                }
            }
        }
        if damages.is_empty() { Ok(()) } else { Err(GoldenError::Damaged(damages)) }
    }

    /// Makes the file: it runs the saga forward, and once for each step that rejects.
    ///
    /// # Errors
    /// When the file is there and is of other steps under the same version, and when the saga cannot be run.
    ///
    /// # Cancel safety
    /// The file is written at the end, or not at all.
    pub async fn record(&self, path: impl AsRef<Path>) -> Result<(), GoldenError> {
        let path = path.as_ref();
        if let Ok(there) = File::read(path) {
            self.check_definition(path, &there)?;
        }
        let mut problems = self.problems.clone();
        for step in self.saga.step_names() {
            let output = self.returned.get(step).map_or("null", String::as_str);
            if self.saga.check_output(step, output.as_bytes()).is_err() {
                problems.push(format!("say what `{step}` returns, with `.returns::<{}>(&..)`", step.replace('-', "_")));
            }
        }
        if !problems.is_empty() {
            return Err(GoldenError::Unrecorded(problems.join("; ")));
        }
        let mut runs: Vec<Run> = Vec::new();
        for rejects in std::iter::once(None).chain(self.saga.step_names().into_iter().map(Some)) {
            let run = record(&self.saga, self.input.as_bytes(), &self.returned, rejects).await;
            runs.push(run.map_err(GoldenError::Unrecorded)?);
        }
        let file = File {
            saga: self.saga.name().to_owned(),
            version: self.saga.version(),
            digest: hex(&self.saga.digest()),
            shape: self.saga.shape(),
            input: self.input.clone(),
            returned: self.returned.clone(),
            runs,
        };
        file.write(path)
    }

    fn check_definition(&self, path: &Path, file: &File) -> Result<(), GoldenError> {
        let path = path.display().to_string();
        if (file.saga.as_str(), file.version) != (self.saga.name(), self.saga.version()) {
            let problem = format!(
                "it is of {} version {}, and not of {} version {}",
                file.saga,
                file.version,
                self.saga.name(),
                self.saga.version()
            );
            return Err(GoldenError::File { path, problem });
        }
        if file.digest == hex(&self.saga.digest()) {
            return Ok(());
        }
        let mut differences = differences(&file.shape, &self.saga.shape());
        if differences.is_empty() {
            differences.push("its steps are others".to_owned());
        }
        Err(GoldenError::Changed { path, saga: file.saga.clone(), version: file.version, differences })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A string takes every write.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// How a saga ended otherwise than it did when the file was made.
fn difference(expected: &End, ended: Result<End, String>, has_branches: bool) -> Option<String> {
    const REMEDY: &str = "read the stored form too, or give the changed steps another version and move sagas with \
         `Migration::step_with`";
    let ended = match ended {
        Ok(ended) => ended,
        Err(problem) => return Some(format!("{problem}; {REMEDY}")),
    };
    if ended.outcome != expected.outcome {
        return Some(format!("it ended {:?}, and was to end {:?}; {REMEDY}", ended.outcome, expected.outcome));
    }
    let is_same = |was: &str, is: &str| was == is || (has_branches && stands_not(was) && stands_not(is));
    // Of a list only those items are listed of which there is something to see.
    let now = |step: &str| ended.steps.get(step).map_or("ready", String::as_str);
    let other = expected.steps.iter().find(|(step, was)| !is_same(was, now(step)));
    if let Some((step, phase)) = other {
        return Some(format!("`{step}` was to end {phase}, and is {}", now(step)));
    }
    let is_other = |(step, given): &(&String, &String)| match ended.given.get(*step) {
        Some(now) => now != *given,
        None => !has_branches,
    };
    let other = expected.given.iter().find(is_other);
    other.map(|(step, _)| format!("`{step}` is given another input than before: its mapping has changed"))
}

/// Beside a step that rejects, one of another branch has begun or has not, as it happens. Either way nothing of it stands.
fn stands_not(phase: &str) -> bool {
    matches!(phase, "undone" | "cancelled" | "ready")
}

impl<S: Store, I> fmt::Debug for Golden<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Golden").field("saga", &self.saga).finish_non_exhaustive()
    }
}
