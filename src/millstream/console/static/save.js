// Saves an answer of the console as a file.
import { Refused } from "./api.js";
import { h } from "./dom.js";

export async function save(asked, name, failed = (fault) => dispatchEvent(new CustomEvent("fault", { detail: fault }))) {
  try {
    const address = URL.createObjectURL(await (await asked).blob());
    const anchor = h("a", { href: address, download: name });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    failed(error.fault);
  }
}
