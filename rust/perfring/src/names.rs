//! names.rs - names of the addresses of samples: what was mapped there, and the function at that place of it.
use crate::decode::{slice, Frame, Frames, Item, Sample};
use crate::error::{status, Error, Result};
use crate::{c_bytes, sys, File};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut, NonNull};
use std::ffi::{CStr, CString};

/// What items have said of threads and mappings, and the symbols of what is mapped.
#[derive(Debug)]
pub struct Names {
    maps: NonNull<sys::perfring_maps>,
    symbols: NonNull<sys::perfring_symbols>,
    stacks: *mut sys::perfring_stacks,        // of both; null: not opened yet
    kernel: *mut sys::perfring_symbol_object, // null: not placed yet
    release: Option<CString>,
}

// SAFETY: one thread at a time.
unsafe impl Send for Names {}

/// A frame of a stack.
#[derive(Clone, Copy, Debug)]
pub struct Named<'n> {
    /// Its address.
    pub frame: Frame,
    /// The function; none: not known.
    pub name: Option<&'n [u8]>,
}

impl Names {
    /// For a file: its builds of objects, and of the kernel its release, are the only ones that are used. None: this machine's
    /// objects, and no names of the kernel. Of a stream the builds come with its records.
    pub fn open(of: Option<&File>) -> Result<Names> {
        let (mut maps, mut symbols) = (null_mut(), null_mut());
        // SAFETY: all members are numbers and pointers, which may be 0.
        let mut options: sys::perfring_symbols_options = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the file is open, or null.
        options.flags = unsafe { sys::perfring_symbols_flags_for(of.map_or(null(), |file| file.get())) };
        // SAFETY: each writes a pointer, which is not null without an error.
        let mut names = unsafe {
            status(sys::perfring_maps_open(&mut maps))?;
            if let Err(error) = status(sys::perfring_symbols_open(&mut symbols, &options)) {
                sys::perfring_maps_close(maps);
                return Err(error);
            }
            let (maps, symbols) = (NonNull::new_unchecked(maps), NonNull::new_unchecked(symbols));
            Names { maps, symbols, stacks: null_mut(), kernel: null_mut(), release: None }
        };
        // SAFETY: both are open.
        status(unsafe { sys::perfring_stacks_open(&mut names.stacks, names.maps.as_ptr(), names.symbols.as_ptr()) })?;
        if let Some(file) = of {
            // SAFETY: the text is null, or valid while the file is.
            names.release = unsafe {
                c_bytes(sys::perfring_file_string(file.get(), sys::PERFRING_FEATURE_OSRELEASE))
                    .and_then(|text| CString::new(text).ok())
            };
            names.expect(file)?;
        }
        Ok(names)
    }

    /// Takes the builds of the file's feature BUILD_ID.
    fn expect(&mut self, file: &File) -> Result<()> {
        let mut size = 0;
        // SAFETY: all members of both structs are numbers and pointers, which may be 0.
        let (mut walk, mut build) =
            unsafe { MaybeUninit::<(sys::perfring_layout_walk, sys::perfring_feature_build_id)>::zeroed().assume_init() };
        // SAFETY: the payload stays while the file is open.
        unsafe {
            let payload = sys::perfring_file_feature(file.get(), sys::PERFRING_FEATURE_BUILD_ID, &mut size);
            if payload.is_null() {
                return Ok(());
            }
            sys::perfring_feature_open(&mut walk, sys::PERFRING_FEATURE_BUILD_ID, payload, size, 0);
        }
        // SAFETY: the walk is open; the name and the id are in the payload, and the name may have no NUL.
        while unsafe { sys::perfring_feature_next_build_id(&mut walk, &mut build) } == 1 {
            let name = unsafe { slice(build.name.cast(), build.name_size as u64) };
            let path = CString::new(name).unwrap_or_default();
            let code =
                unsafe { sys::perfring_symbols_expect(self.symbols.as_ptr(), path.as_ptr(), build.id, build.id_size as u32) };
            if code == -sys::ENOMEM {
                return Err(Error::NoMemory);
            }
        }
        Ok(())
    }

    /// Takes an item that is no sample.
    pub fn take(&mut self, item: &Item<'_>) -> Result<()> {
        // SAFETY: the item is whole.
        status(unsafe { sys::perfring_maps_take(self.maps.as_ptr(), &item.item) })
    }

    /// The thread's name, as it is now.
    pub fn comm(&self, tid: u32) -> Option<&[u8]> {
        // SAFETY: valid until close.
        unsafe { c_bytes(sys::perfring_maps_comm(self.maps.as_ptr(), tid)) }
    }

    /// The function at an address of the process, as its mappings are now. cpumode: [`Sample::cpumode`].
    pub fn find(&mut self, cpumode: u16, pid: u32, ip: u64) -> Result<Option<&[u8]>> {
        let symbols = self.symbols.as_ptr();
        // SAFETY: all members are numbers and pointers, which may be 0.
        let mut symbol: sys::perfring_symbol = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: a mapping, and its object, stay until the next take; names until close.
        unsafe {
            let mapping = match sys::perfring_maps_find(self.maps.as_ptr(), cpumode.into(), pid, ip).as_ref() {
                Some(mapping) => mapping,
                None => return Ok(None),
            };
            let of = &*mapping.object;
            match of.kind {
                sys::PERFRING_MAPS_KSYMBOL => return Ok(c_bytes(of.name)),
                sys::PERFRING_MAPS_KERNEL | sys::PERFRING_MAPS_MODULE => {
                    self.place_kernel(mapping)?;
                    if !self.kernel.is_null() {
                        sys::perfring_symbol_find(self.kernel, ip, &mut symbol);
                    }
                    if symbol.module.is_null() != (of.kind == sys::PERFRING_MAPS_KERNEL) {
                        return Ok(None); // something else was there
                    }
                }
                _ => {
                    let file = sys::perfring_symbol_file {
                        path: of.name,
                        build_id: of.file.build_id.as_ptr(),
                        build_id_size: of.file.build_id_size.into(),
                        pid: pid as i32,
                        ino: of.file.ino,
                        ino_generation: of.file.ino_generation,
                        reserved: [0; 2],
                    };
                    let mut object = null_mut();
                    status(sys::perfring_symbols_get(symbols, &file, &mut object))?;
                    sys::perfring_symbol_find(object, sys::perfring_mapping_offset(mapping, ip), &mut symbol);
                }
            }
            Ok(c_bytes(symbol.name))
        }
    }

    /// Reads the kernel's symbols when a mapping says where it was: "[kernel.kallsyms]_text", at pgoff.
    fn place_kernel(&mut self, mapping: &sys::perfring_mapping) -> Result<()> {
        // SAFETY: the object stays until close.
        let (name, kind) = unsafe { (CStr::from_ptr((*mapping.object).name), (*mapping.object).kind) };
        let reference = name.to_bytes().iter().position(|&byte| byte == b']').map_or(0, |at| at + 1);
        let release = match &self.release {
            Some(release) if self.kernel.is_null() && kind == sys::PERFRING_MAPS_KERNEL => release,
            _ => return Ok(()),
        };
        if reference == 0 || reference == name.to_bytes().len() {
            return Ok(());
        }
        // SAFETY: all members are numbers and pointers, which may be 0.
        let mut kernel: sys::perfring_symbol_kernel = unsafe { MaybeUninit::zeroed().assume_init() };
        kernel.release = release.as_ptr();
        kernel.reference = name.to_bytes_with_nul()[reference..].as_ptr().cast();
        kernel.address = mapping.pgoff;
        // SAFETY: nothing of it need stay.
        status(unsafe { sys::perfring_symbols_get_kernel(self.symbols.as_ptr(), &kernel, &mut self.kernel) })
    }

    /// The sample's frames with their names, innermost first: of its callchain, or, if it has a copy of its stack, by unwind tables,
    /// at most 127 of user space; up to where the chain is damaged. A sample without both, or without TID, has none.
    pub fn stack(&mut self, sample: &Sample<'_>) -> Result<Vec<Named<'_>>> {
        let mut chain = sys::perfring_list { words: null(), nr: 0 };
        let mut end = 0;
        // SAFETY: the sample is whole.
        let code = unsafe { sys::perfring_stacks_chain(self.stacks, sample.get(), 127, &mut chain, &mut end) };
        // SAFETY: the chain stays until the next call.
        let frames = match code {
            code if code < 0 => return Err(Error::from_code(code)),
            0 => sample.frames(),
            _ => unsafe { Frames::new(&chain) },
        };
        let mut stack = Vec::new();
        if let Some(pid) = sample.pid() {
            for frame in frames {
                let name = self.find(sample.cpumode(&frame), pid, frame.ip)?.map(|name| name as *const [u8]);
                // SAFETY: names stay until close.
                stack.push(Named { frame, name: name.map(|name| unsafe { &*name }) });
            }
        }
        Ok(stack)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: each is closed once, stacks before what they are of; null is allowed.
        unsafe {
            sys::perfring_stacks_close(self.stacks);
            sys::perfring_symbols_close(self.symbols.as_ptr());
            sys::perfring_maps_close(self.maps.as_ptr());
        }
    }
}
