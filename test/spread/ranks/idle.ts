/** A program that waits until its standard input is closed, as that of a rank does. */
process.stdin.on("end", () => process.exit()).resume()
