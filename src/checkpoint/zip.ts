/** As much of the zip format as PyTorch writes: files that are stored, not compressed. */

export class ZipError extends Error {}

const endOfDirectory = 0x06054b50
const directoryEntry = 0x02014b50
const localHeader = 0x04034b50
const wide = 0xffffffff

/** The files of an archive, by their names; views of its bytes. Throws a ZipError. */
export const readZip = (bytes: Uint8Array): ReadonlyMap<string, Uint8Array> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const need = (from: number, length: number, what: string): void => {
    if (from < 0 || from + length > bytes.length)
      throw new ZipError(`${what} at ${from} is beyond the file's ${bytes.length} bytes`)
  }
  const end = findEnd(view)
  const count = view.getUint16(end + 10, true)
  let at = view.getUint32(end + 16, true)
  const files = new Map<string, Uint8Array>()
  const text = new TextDecoder()
  for (let index = 0; index < count; index++) {
    need(at, 46, `entry ${index} of the directory`)
    if (view.getUint32(at, true) !== directoryEntry)
      throw new ZipError(`there is no entry ${index} of the directory at ${at}`)
    const method = view.getUint16(at + 10, true)
    const compressed = view.getUint32(at + 20, true)
    const size = view.getUint32(at + 24, true)
    const [nameLength, extraLength, remarkLength] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true))
    const local = view.getUint32(at + 42, true)
    need(at + 46, nameLength, "a name")
    const name = text.decode(bytes.subarray(at + 46, at + 46 + nameLength))
    if (method !== 0 || compressed !== size)
      throw new ZipError(`"${name}" is compressed; PyTorch stores its files as they are`)
    if (size === wide || local === wide)
      throw new ZipError(`"${name}" is larger than 4 GB; a sharded file has smaller parts`)
    need(local, 30, `the header of "${name}"`)
    if (view.getUint32(local, true) !== localHeader) throw new ZipError(`"${name}" has no header at ${local}`)
    const from = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true)
    need(from, size, `"${name}"`)
    files.set(name, bytes.subarray(from, from + size))
    at += 46 + nameLength + extraLength + remarkLength
  }
  return files
}

/** The record that says where the directory is: at the end, before a remark of at most 65,535 bytes. */
const findEnd = (view: DataView): number => {
  const last = view.byteLength - 22
  for (let at = last; at >= Math.max(0, last - 0xffff); at--) if (view.getUint32(at, true) === endOfDirectory) return at
  throw new ZipError("it is no zip archive: the directory's end is missing")
}
