use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use saga_core::Saga;
use saga_core::machine::differences;
use saga_core::step::{Payload, Step};
use saga_core::store::Store;

use super::answers::{answer, shown};
use super::compare::difference;
use super::file::{Damage, File, GoldenError, Run, SubSaga};
use super::play::{Played, SubSagas};

/// A definition with the outputs of its steps, to be compared with a golden file.
pub struct Golden<S: Store, I> {
    saga: Saga<S, I>,
    /// Other versions of its sub-sagas.
    beside: Vec<Saga<S, ()>>,
    input: String,
    returned: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl<S: Store, I: Payload> Golden<S, I> {
    /// Takes the definition, and the input with which its sagas are started.
    pub fn of<R>(saga: &Saga<S, I, R>, input: &I) -> Self {
        let (mut golden, input) = (
            Self {
                saga: saga.without_result_type(),
                beside: Vec::new(),
                input: String::new(),
                returned: BTreeMap::new(),
                problems: Vec::new(),
            },
            serde_json::to_string(input),
        );
        match input {
            Ok(input) => golden.input = input,
            Err(error) => golden.problems.push(format!("the input cannot be stored: {error}")),
        }
        golden
    }

    /// Sets the output of a step, or of every item of a `for_each` step. Steps that return `()` need none. Set a signal with
    /// [`Signaled<T>`](saga_core::Signaled); otherwise none arrives.
    ///
    /// The output applies to each step with this name, in the saga and in its sub-sagas. If a step of a sub-saga has the same
    /// name and another output, use [`returns_in`](Golden::returns_in).
    #[must_use]
    pub fn returns<T: Step>(self, output: &T::Output) -> Self {
        self.returns_as::<T>(T::NAME.to_owned(), output)
    }

    /// Sets the output of a step of one sub-saga only. A signal has one content wherever it is waited for: set it with
    /// [`returns`](Golden::returns).
    #[must_use]
    pub fn returns_in<Sub: saga_core::SubSaga, T: Step>(self, output: &T::Output) -> Self {
        let name = format!("{}>{}", <Sub as saga_core::SubSaga>::NAME, T::NAME);
        self.returns_as::<T>(name, output)
    }

    fn returns_as<T: Step>(mut self, name: String, output: &T::Output) -> Self {
        match T::OUTPUT.encode(output) {
            Ok(output) => _ = self.returned.insert(name, String::from_utf8_lossy(&output).into_owned()),
            Err(error) => self.problems.push(format!("what {} returns cannot be stored: {error}", shown(&name))),
        }
        self
    }

    /// Adds another version of a sub-saga, which the program registers beside the current one. Sagas of the file that were
    /// begun with it continue with it.
    #[must_use]
    pub fn beside<J, R>(mut self, sub_saga: &Saga<S, J, R>) -> Self {
        self.beside.push(sub_saga.without_input());
        self
    }

    /// Continues each saga of the file to its end with the current definition. If `UPDATE_GOLDEN` is set in the environment,
    /// the file is written first; a file with other steps under the same version is an error.
    ///
    /// # Errors
    /// What differs, and what to do.
    ///
    /// # Cancel safety
    /// It only reads, unless it writes the file: then the whole file is written or nothing, as far as the file system
    /// guarantees this.
    pub async fn check(&self, path: impl AsRef<Path>) -> Result<(), GoldenError> {
        let path = path.as_ref();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            self.record(path).await?;
        }
        self.verify(path).await
    }

    /// The same, but never writes the file.
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
        let sub_sagas = self.sub_sagas_of(path, &file)?;
        let has_branches = self.saga.has_branches() || sub_sagas.iter().any(|(_, sub)| sub.has_branches());
        let mut damages = Vec::new();
        for run in &file.runs {
            let rejects = run.rejects.as_deref();
            let played = Played { saga: &self.saga, sub_sagas: sub_sagas.clone(), returned: &file.returned, rejects };
            for stand in &run.stands {
                let ended = played.replay(&file.input, stand).await;
                if let Some(problem) = difference(&run.end, ended, has_branches) {
                    let rejects = rejects.map(|step| format!(", where {} rejects", shown(step))).unwrap_or_default();
                    damages.push(Damage { stand: format!("{}{rejects}", stand.before), problem });
                }
            }
        }
        if damages.is_empty() { Ok(()) } else { Err(GoldenError::Damaged(damages)) }
    }

    /// Writes the file: it runs the saga forward, and once with each step rejecting, in the saga and in its sub-sagas.
    ///
    /// # Errors
    /// If the file exists and cannot be read or has other steps under the same version, or if the saga cannot run.
    ///
    /// # Cancel safety
    /// The file is written at the end, or not at all.
    pub async fn record(&self, path: impl AsRef<Path>) -> Result<(), GoldenError> {
        let path = path.as_ref();
        let sub_sagas = self.saga.sub_sagas();
        match File::read(path) {
            Ok(there) => {
                self.check_definition(path, &there)?;
                self.check_versions(path, &there)?;
            }
            Err(GoldenError::Missing { .. }) => {}
            // It may be of a version that still runs, with the marks of a merge in it.
            Err(unreadable) => return Err(unreadable),
        }
        let steps = self.steps();
        let mut problems = self.problems.clone();
        problems.extend(steps.iter().filter_map(|step| self.problem_with_answer(step)));
        problems.extend(self.signals_of_sub_sagas());
        if !problems.is_empty() {
            return Err(GoldenError::Unrecorded(problems.join("; ")));
        }
        let mut runs: Vec<Run> = Vec::new();
        for rejects in std::iter::once(None).chain(steps.iter().map(|step| Some(step.as_str()))) {
            let played = Played { saga: &self.saga, sub_sagas: sub_sagas.clone(), returned: &self.returned, rejects };
            runs.push(played.record(self.input.as_bytes()).await.map_err(GoldenError::Unrecorded)?);
        }
        let file = File {
            saga: self.saga.name().to_owned(),
            version: self.saga.version(),
            digest: hex(&self.saga.digest()),
            shape: self.saga.shape(),
            input: self.input.clone(),
            sub_sagas: sub_sagas.iter().map(|(step, sub)| ((*step).to_owned(), kept(sub))).collect(),
            returned: self.returned.clone(),
            runs,
        };
        file.write(path)
    }

    /// The steps that have a function, those of sub-sagas with the step in front that these are.
    fn steps(&self) -> Vec<String> {
        let own = self.saga.step_names().into_iter().map(str::to_owned);
        let subs = self.saga.sub_sagas();
        let inside =
            subs.iter().flat_map(|(sub, saga)| saga.step_names().into_iter().map(move |step| format!("{sub}>{step}")));
        own.chain(inside).collect()
    }

    fn problem_with_answer(&self, step: &str) -> Option<String> {
        let output = answer(&self.returned, step).map_or("null", String::as_str).as_bytes();
        let said = |step: &str| step.replace('-', "_");
        match step.split_once('>') {
            None => {
                let is_wrong = self.saga.check_output(step, output).is_err();
                is_wrong.then(|| format!("say what `{step}` returns, with `.returns::<{}>(&..)`", said(step)))
            }
            Some((sub, name)) => {
                let subs = self.saga.sub_sagas();
                let (_, saga) = subs.iter().find(|(step, _)| *step == sub)?;
                let is_wrong = saga.check_output(name, output).is_err();
                is_wrong.then(|| {
                    format!(
                        "say what {} returns, with `.returns::<{1}>(&..)`, or with `.returns_in::<.., {1}>(&..)` where another \
                         step has that name",
                        shown(step),
                        said(name)
                    )
                })
            }
        }
    }

    /// The signals whose contents were given for one sub-saga only, where none is looked for.
    fn signals_of_sub_sagas(&self) -> impl Iterator<Item = String> {
        let subs = self.saga.sub_sagas();
        let is_signal = move |of: &str| {
            let Some((sub, name)) = of.split_once('>') else { return false };
            let mut sagas = subs.iter().filter(|(step, _)| *step == sub).map(|(_, saga)| saga);
            let is_sub_saga = subs.iter().any(|(step, _)| *step == name);
            !is_sub_saga && sagas.any(|saga| saga.names().contains(&name) && !saga.step_names().contains(&name))
        };
        self.returned.keys().filter(move |of| is_signal(of)).map(|of| {
            format!(
                "{} is a signal, which has one content wherever it is waited for; give it with `.returns`",
                shown(of)
            )
        })
    }

    /// The sub-sagas that the file has rows of, as they are today. A file of before holds none.
    fn sub_sagas_of(&self, path: &Path, file: &File) -> Result<SubSagas<S>, GoldenError> {
        let mut found = Vec::new();
        for (step, now) in self.saga.sub_sagas() {
            let Some(kept) = file.sub_sagas.get(step) else { continue };
            let is_it = |saga: &&Saga<S, ()>| saga.name() == kept.saga && saga.version() == kept.version;
            let Some(saga) = std::iter::once(&now).chain(&self.beside).find(is_it) else {
                let problem = format!(
                    "`{step}` is {0} version {1} in it, which is not here; register it as long as sagas of it may be under \
                     way, and give it with `.beside(&..)`",
                    kept.saga, kept.version
                );
                return Err(GoldenError::File { path: path.display().to_string(), problem });
            };
            check_shape(path, saga, kept)?;
            found.push((step, saga.clone()));
        }
        Ok(found)
    }

    /// A file that is made anew has the sub-sagas that are started now.
    fn check_versions(&self, path: &Path, file: &File) -> Result<(), GoldenError> {
        for (step, now) in self.saga.sub_sagas() {
            let Some(kept) = file.sub_sagas.get(step) else { continue };
            if kept.version != now.version() {
                let problem = format!(
                    "`{step}` is {} version {} in it, and {} now; keep it, and make another file for the new version",
                    kept.saga,
                    kept.version,
                    now.version()
                );
                return Err(GoldenError::File { path: path.display().to_string(), problem });
            }
            check_shape(path, &now, kept)?;
        }
        Ok(())
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
        let kept = SubSaga {
            saga: file.saga.clone(),
            version: file.version,
            digest: file.digest.clone(),
            shape: file.shape.clone(),
        };
        check_shape(Path::new(&path), &self.saga, &kept)
    }
}

fn kept<S: Store, I>(saga: &Saga<S, I>) -> SubSaga {
    SubSaga { saga: saga.name().to_owned(), version: saga.version(), digest: hex(&saga.digest()), shape: saga.shape() }
}

fn check_shape<S: Store, I>(path: &Path, saga: &Saga<S, I>, kept: &SubSaga) -> Result<(), GoldenError> {
    if kept.digest == hex(&saga.digest()) {
        return Ok(());
    }
    let mut differences = differences(&kept.shape, &saga.shape());
    if differences.is_empty() {
        differences.push("its steps are others".to_owned());
    }
    let (path, saga) = (path.display().to_string(), kept.saga.clone());
    Err(GoldenError::Changed { path, saga, version: kept.version, differences })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // A string takes every write.
        _ = write!(text, "{byte:02x}");
        text
    })
}

impl<S: Store, I> fmt::Debug for Golden<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Golden").field("saga", &self.saga).finish_non_exhaustive()
    }
}
