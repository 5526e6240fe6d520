const gibibyte = 2 ** 30

/** The system hands out memory that it doesn't have, and ends the process once that is filled. */
const most = 16 * gibibyte

/** Why a memory of so many bytes must not be made, if it mustn't. */
export const tooLarge = (bytes: number): string | undefined =>
  bytes > most
    ? `need ${Math.ceil(bytes / gibibyte)} GiB of memory; make it smaller, so that at most ${most / gibibyte} GiB are needed`
    : undefined
