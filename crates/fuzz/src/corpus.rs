//! The inputs of a target: good ones that it makes itself, and what was found and kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::target::Target;

/// What is kept of a target, in files and in bytes a file: the corpus lies in the repository.
const FILES_MAX: usize = 32;
const FILE_BYTES_MAX: usize = 8 * 1024;

/// `fuzz/corpus/TARGET/`.
pub(crate) fn folder(target: &Target) -> PathBuf {
    root().join("fuzz/corpus").join(target.name)
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("crates/fuzz lies two below the root").to_path_buf()
}

/// Kept inputs first, in the order of their names, then the target's own.
pub(crate) fn load(target: &Target) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    for file in files(&folder(target))? {
        inputs.push(fs::read(&file).with_context(|| format!("read {}", file.display()))?);
    }
    inputs.extend((target.seeds)());
    Ok(inputs)
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Saves an input under a name made of its bytes; where it lies.
pub(crate) fn save(target: &Target, kind: &str, input: &[u8]) -> anyhow::Result<PathBuf> {
    let folder = folder(target);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let file = folder.join(format!("{kind}-{:016x}", fnv(input)));
    fs::write(&file, input).with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// Saves what taught us something, within the corpus's bounds.
pub(crate) fn keep(target: &Target, input: &[u8]) -> anyhow::Result<()> {
    if input.len() <= FILE_BYTES_MAX && files(&folder(target))?.len() < FILES_MAX {
        save(target, "kept", input)?;
    }
    Ok(())
}

/// FNV-1a.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
