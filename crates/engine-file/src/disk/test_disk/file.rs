//! An open file of a disk in memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;
use strandline_model::Timestamp;
use strandline_storage::BatchPiece;

use super::fault::Moment;
use super::{Fault, FileId, Meanwhile, Operation, State, identity_of};
use crate::disk::{DiskFile, FileIdentity, read_exact_at};

#[derive(Debug)]
pub(super) struct TestFile {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) id: FileId,
    pub(super) sync_failed: AtomicBool,
}

impl DiskFile for TestFile {
    fn write_at(&self, position: u64, slices: &[&[u8]]) -> io::Result<()> {
        let mut state = self.state.lock();
        let bytes = slices.concat();
        let position = index(position)?;
        if let Some(Fault::Write { kind, written }) = state.meet(Moment::Write, self.id) {
            state.write(self.id, position, &bytes[..written.min(bytes.len())])?;
            return Err(if kind == io::ErrorKind::Other { Errno::IO.into() } else { kind.into() });
        }
        let length = state.files[&self.id].bytes.len();
        let fits = length.saturating_add(state.room()).saturating_sub(position).min(bytes.len());
        state.write(self.id, position, &bytes[..fits])?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize> {
        let meanwhile = self.state.lock().meanwhile.take();
        if let Some(Meanwhile(other)) = meanwhile {
            other();
        }
        let mut state = self.state.lock();
        if state.meet(Moment::Read, self.id).is_some() {
            return Err(Errno::IO.into());
        }
        state.check_readable(self.id, &(position..position.saturating_add(buf.len() as u64)))?;
        let bytes = &state.files[&self.id].bytes;
        let start = index(position)?.min(bytes.len());
        let count = buf.len().min(bytes.len() - start);
        buf[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.state.lock().files[&self.id].bytes.len() as u64)
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(identity_of(self.id))
    }

    fn modified(&self) -> io::Result<Timestamp> {
        Ok(self.state.lock().files[&self.id].modified)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let length = index(length)?;
        state.record(Operation::SetLen { file: self.id, length })?;
        Arc::make_mut(&mut state.cached(self.id).bytes).resize(length, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if self.sync_failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        if let Some(Fault::Sync { persisted }) = state.meet(Moment::Sync, self.id) {
            self.sync_failed.store(true, Ordering::Relaxed);
            state.record(Operation::SyncFailed { file: self.id, persisted: persisted.into() })?;
            return Err(Errno::IO.into());
        }
        state.record(Operation::Sync(self.id))
    }

    fn write_zeros(&self, position: u64, length: u64) -> io::Result<()> {
        self.write_at(position, &[&vec![0; index(length)?]])
    }

    fn drop_cache(&self, position: u64, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let range = index(position)?..index(position.saturating_add(length))?;
        let State { files, medium, .. } = &mut *state;
        let cached = files.get_mut(&self.id).expect("a file is created before it is used");
        let bytes: &mut Vec<u8> = Arc::make_mut(&mut cached.bytes);
        medium.reread(self.id, bytes, range);
        Ok(())
    }

    fn region(&self, position: u64, length: u64) -> io::Result<BatchPiece> {
        let mut bytes = vec![0; index(length)?];
        read_exact_at(self, position, &mut bytes)?;
        Ok(BatchPiece::Memory(bytes.into()))
    }

    fn is_doubtful(&self) -> bool {
        false
    }

    fn has_readers(&self) -> bool {
        false
    }
}

fn index(position: u64) -> io::Result<usize> {
    usize::try_from(position).map_err(|_| io::ErrorKind::InvalidInput.into())
}
