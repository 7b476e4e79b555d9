//! The tree as the checks see it: text files by path, and the workspace's crates.
//!
//! Reading is separate from checking, so that a test can hand a check a tree of three lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Everything a check may look at.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Text files that are tracked, or would be by `git add`; by path from the root.
    pub(crate) files: BTreeMap<String, String>,
    /// All paths, the binary files' too.
    pub(crate) paths: BTreeSet<String>,
    /// The workspace's crates, by folder name.
    pub(crate) crates: BTreeMap<String, Crate>,
    /// Everything else that is built with them, tests included.
    pub(crate) packages: Vec<Outside>,
}

/// A package of somebody else's.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression; empty when it names none.
    pub(crate) license: String,
    /// Where it comes from.
    pub(crate) source: String,
}

/// One crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    /// Root files of its targets, by path from the root of the tree.
    pub(crate) roots: Vec<String>,
    /// Folder names of the workspace crates it depends on outside of tests.
    pub(crate) uses: BTreeSet<String>,
    /// Names of the other packages it depends on directly, outside of tests.
    pub(crate) outside: BTreeSet<String>,
    /// Names of all packages that are built with it, outside of tests.
    pub(crate) closure: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree at `root`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(root)
            .manifest_path(root.join("Cargo.toml"))
            .exec()
            .context("run cargo metadata")?;
        let (crates, packages) = (read_crates(root, &metadata), read_packages(&metadata));
        let mut tree = Self { crates, packages, ..Self::default() };
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("run git ls-files")?;
        ensure!(list.status.success(), "git ls-files: {}", String::from_utf8_lossy(&list.stderr));
        let names = String::from_utf8(list.stdout).context("a file name is not UTF-8")?;
        for name in names.split_terminator('\0') {
            let path = root.join(name);
            if !path.is_file() {
                continue; // deleted, not yet committed
            }
            let bytes = std::fs::read(&path).with_context(|| format!("read {name}"))?;
            // A zero byte makes a file binary, as git sees it.
            if let Ok(text) = String::from_utf8(bytes)
                && !text.contains('\0')
            {
                tree.files.insert(name.to_owned(), text);
            }
            tree.paths.insert(name.to_owned());
        }
        Ok(tree)
    }

    /// The Rust files, with their paths.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.with_extension(".rs")
    }

    /// The Markdown files, with their paths.
    pub(crate) fn markdown_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.with_extension(".md")
    }

    fn with_extension<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all_files().filter(move |(path, _)| path.ends_with(end))
    }

    /// All text files, with their paths.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether a file or a folder of that path is there.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self
                .paths
                .range(folder.clone()..)
                .next()
                .is_some_and(|next| next.starts_with(&folder))
    }
}

fn read_packages(metadata: &Metadata) -> Vec<Outside> {
    let outside = metadata.packages.iter().filter_map(|package| {
        Some(Outside {
            name: package.name.to_string(),
            version: package.version.to_string(),
            license: package.license.clone().unwrap_or_default(),
            source: package.source.as_ref()?.repr.clone(),
        })
    });
    outside.collect()
}

fn read_crates(root: &Path, metadata: &Metadata) -> BTreeMap<String, Crate> {
    let members: BTreeMap<PackageId, String> = metadata
        .workspace_packages()
        .iter()
        .map(|package| (package.id.clone(), folder_name(package)))
        .collect();
    let mut crates = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let closure = closure(metadata, &package.id);
        let direct = direct(metadata, &package.id);
        let roots = package
            .targets
            .iter()
            .filter_map(|target| target.src_path.as_std_path().strip_prefix(root).ok())
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        let uses = direct.iter().filter_map(|id| members.get(*id).cloned()).collect();
        let outside = direct
            .iter()
            .filter(|id| !members.contains_key(*id))
            .map(|id| metadata[*id].name.to_string())
            .collect();
        let closure = closure.iter().map(|id| metadata[*id].name.to_string()).collect();
        crates.insert(folder_name(package), Crate { roots, uses, outside, closure });
    }
    crates
}

fn folder_name(package: &Package) -> String {
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
    folder.expect("a manifest lies in a folder").to_owned()
}

fn direct<'a>(metadata: &'a Metadata, id: &PackageId) -> BTreeSet<&'a PackageId> {
    let resolve = metadata.resolve.as_ref().expect("metadata was asked for dependencies");
    let node = resolve.nodes.iter().find(|node| node.id == *id).expect("each package has a node");
    let built = |kind: &DependencyKind| *kind == DependencyKind::Normal;
    let dependencies = node.deps.iter();
    dependencies
        .filter(|dependency| dependency.dep_kinds.iter().any(|info| built(&info.kind)))
        .map(|dependency| &dependency.pkg)
        .collect()
}

fn closure<'a>(metadata: &'a Metadata, id: &PackageId) -> BTreeSet<&'a PackageId> {
    let mut found = direct(metadata, id);
    let mut waiting: Vec<&PackageId> = found.iter().copied().collect();
    while let Some(next) = waiting.pop() {
        for dependency in direct(metadata, next) {
            if found.insert(dependency) {
                waiting.push(dependency);
            }
        }
    }
    found
}
