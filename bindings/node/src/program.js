// Where the program is.
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import process from "node:process";

const isProgram = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The path of the program: $KUBEWRIGHT, the one of this platform's package, or the one on the PATH. */
export function findProgram() {
  const named = process.env.KUBEWRIGHT;
  if (named) {
    if (!isProgram(named)) throw new Error(`the variable KUBEWRIGHT names ${named}, which is no program`);
    return named;
  }
  const platform = `@kubewright/${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`${platform}/bin/kubewright`);
  } catch {
    // The package is optional: there is none for each platform.
  }
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  const found = folders.map((folder) => join(folder, "kubewright")).find(isProgram);
  if (!found) {
    throw new Error(
      `there is no kubewright program: set the variable KUBEWRIGHT to its path, install the package ${platform}, ` +
        "or put kubewright on the PATH (cargo install --locked kubewright-cli)",
    );
  }
  return found;
}
