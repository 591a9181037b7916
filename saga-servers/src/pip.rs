//! Programs that pip installs, once, into folders of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::programs::python_with_venv;

/// The virtual environment of Python with this version of a package, which is made if it is not there. `package` may name extras, such
/// as `moto[server]`.
///
/// It is made beside and then renamed, so that what has its name is whole. Of several processes, one makes it and the others wait. So
/// only its Python may be called, not the scripts beside it, which name the folder that it was made in.
pub(crate) async fn installed(
    name: &'static str,
    package: &'static str,
    version: &'static str,
) -> Result<PathBuf, Error> {
    let installing = tokio::task::spawn_blocking(move || environment(name, package, version)).await;
    installing.map_err(|error| Error::system(format!("install {name}"))(std::io::Error::other(error)))?
}

/// What lies at `path` among the packages of an environment, whose own path has the version of Python in it.
pub(crate) fn in_packages(environment: &Path, path: &str) -> Result<Option<PathBuf>, Error> {
    let lib = environment.join("lib");
    let pythons = std::fs::read_dir(&lib).map_err(Error::system(format!("read {}", lib.display())))?;
    Ok(pythons.flatten().map(|python| python.path().join("site-packages").join(path)).find(|path| path.exists()))
}

fn environment(name: &str, package: &str, version: &str) -> Result<PathBuf, Error> {
    let parent = cache()?;
    let environment = parent.join(format!("{name}-{version}"));
    if environment.exists() {
        return Ok(environment);
    }
    std::fs::create_dir_all(&parent).map_err(Error::system(format!("make the folder {}", parent.display())))?;
    let lock = std::fs::File::create(parent.join(format!("{name}.lock")));
    let lock = lock.map_err(Error::system("make a file to lock"))?;
    lock.lock().map_err(Error::system("lock a file"))?;
    if environment.exists() {
        return Ok(environment);
    }
    let new = tempfile::Builder::new().prefix(&format!("{name}-new-")).tempdir_in(&parent);
    let new = new.map_err(Error::system("make a temporary folder"))?;
    let venv = new.path().join("venv");
    call(Command::new(python_with_venv()?).args(["-m", "venv"]).arg(&venv), "make a virtual environment of Python")?;
    install(&venv.join("bin/python"), name, &format!("{package}=={version}"))?;
    std::fs::rename(&venv, &environment).map_err(Error::system(format!("make {}", environment.display())))?;
    Ok(environment)
}

fn install(python: &Path, name: &str, package: &str) -> Result<(), Error> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
    call(&mut pip, &format!("install {name} from PyPI: is there a network, or a mirror in PIP_INDEX_URL?"))
}

/// `saga-servers` in the user's folder of caches.
fn cache() -> Result<PathBuf, Error> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let caches = caches.ok_or_else(|| Error::Refused {
        asked: "the folder of caches".to_owned(),
        answer: "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
    })?;
    Ok(caches.join("saga-servers"))
}

/// Runs a program to its end; a failure has the end of what it printed.
fn call(command: &mut Command, doing: &str) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::system(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    Err(Error::Refused { asked: doing.to_owned(), answer: lines[lines.len().saturating_sub(10)..].join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_installed_is_said() {
        let error =
            call(Command::new("sh").args(["-c", "echo no route to host >&2; exit 1"]), "install moto from PyPI");
        let said = error.expect_err("it failed").to_string();
        assert_eq!(said, "install moto from PyPI failed: no route to host");
    }
}
