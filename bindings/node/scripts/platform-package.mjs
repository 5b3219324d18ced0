// Makes the package of a platform of a static Linux program: node scripts/platform-package.mjs PROGRAM FOLDER
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const [program, folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node scripts/platform-package.mjs PROGRAM FOLDER");
  process.exit(2);
}
// The machine in an ELF header (e_machine), and what npm calls it.
const machines = new Map([[62, "x64"], [183, "arm64"]]);
const head = readFileSync(program).subarray(0, 20);
const cpu = head.subarray(0, 4).toString("latin1") === "\x7fELF" ? machines.get(head.readUInt16LE(18)) : undefined;
if (!cpu) {
  console.error(`${program} is no Linux program for x86_64 or aarch64`);
  process.exit(1);
}
const { version, license, repository } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const name = `@kubewright/linux-${cpu}`;
mkdirSync(join(folder, "bin"), { recursive: true });
copyFileSync(program, join(folder, "bin/kubewright"));
chmodSync(join(folder, "bin/kubewright"), 0o755);
const description = `The kubewright program for Linux on ${cpu}`;
const manifest = { name, version, description, license, repository, os: ["linux"], cpu: [cpu], files: ["bin"] };
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`${name}@${version} in ${folder}`);
