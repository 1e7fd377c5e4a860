package console

import "github.com/fiscalhub/fiscalhub/internal/lang"

func accountTexts() lang.Texts {
	return lang.Texts{
		"account.preferences": lang.Text("Language and look", "Idioma y apariencia"),
		"account.language":    lang.Text("Language", "Idioma"),
		"account.theme":       lang.Text("Look", "Apariencia"),
		"account.automatic":   lang.Text("Like the browser", "Como el navegador"),
		"account.light":       lang.Text("Light", "Clara"),
		"account.dark":        lang.Text("Dark", "Oscura"),

		"account.password":      lang.Text("Password", "Contraseña"),
		"account.password_lead": lang.Text("When you change it, your other sessions end.", "Al cambiarla terminan sus demás sesiones."),
		"account.password_now":  lang.Text("Current password", "Contraseña actual"),
		"account.password_save": lang.Text("Change the password", "Cambiar la contraseña"),
		"account.factor_off":    lang.Text("Off", "Desactivado"),
		"account.factor_lead":   lang.Text("In addition to the password, the console asks for a code of an app on your phone. A stolen password alone then opens nothing.", "Además de la contraseña, la consola pide un código de una aplicación de su teléfono. Así nadie entra solo con su contraseña."),
		"account.must_enrol":    lang.Text("This service demands a second factor of operators. Set it up to use the other pages.", "Este servicio exige un segundo factor a los operadores. Actívelo para usar las demás páginas."),
		"account.begin":         lang.Text("Set up the second factor", "Activar el segundo factor"),
		"account.step_scan":     lang.Text("Open your code app (Google Authenticator, Aegis, 1Password or another one) and read this QR code.", "Abra su aplicación de códigos (Google Authenticator, Aegis, 1Password u otra) y lea este código QR."),
		"account.step_enter":    lang.Text("Enter the 6 digits that the app shows.", "Escriba el código de 6 dígitos que muestra la aplicación."),
		"account.qr":            lang.Text("QR code of the second factor", "Código QR del segundo factor"),
		"account.secret":        lang.Text("Or enter this key into the app", "O escriba esta clave en la aplicación"),
		"account.code":          lang.Text("Code of 6 digits", "Código de 6 dígitos"),
		"account.confirm":       lang.Text("Confirm", "Confirmar"),
		"account.restart":       lang.Text("Start with another key", "Empezar con otra clave"),
		"account.wrong_code":    lang.Text("The code is not right. Check the clock of your phone, and enter the code that it shows now.", "El código no es correcto. Compruebe la hora de su teléfono y escriba el código que muestra ahora."),
		"account.since":         lang.Text("On since %s. You have %s recovery codes left.", "Activado desde el %s. Le quedan %s códigos de recuperación."),
		"account.codes_title":   lang.Text("Keep these recovery codes now", "Guarde estos códigos de recuperación ahora"),
		"account.codes_text":    lang.Text("Each of them replaces the code of your phone once, for example when you lose it. They are not shown again.", "Cada uno reemplaza una vez al código de su teléfono, por ejemplo si lo pierde. No se vuelven a mostrar."),
		"account.remove":        lang.Text("Remove the second factor", "Quitar el segundo factor"),
		"account.remove_ask":    lang.Text("Remove the second factor? Only the password will protect your account.", "¿Quitar el segundo factor? Su cuenta quedará protegida solo con la contraseña."),

		"account.wrong_password": lang.Text("The password is not right.", "La contraseña no es correcta."),

		"account.sessions":      lang.Text("Open sessions", "Sesiones abiertas"),
		"account.sessions_lead": lang.Text("A session ends after 12 hours without use, and after 7 days. End those that you do not know, and change your password.", "Una sesión termina después de 12 horas sin uso y a los 7 días. Cierre las que no reconozca y cambie su contraseña."),
		"account.browser":       lang.Text("Browser", "Navegador"),
		"account.started":       lang.Text("Started", "Inicio"),
		"account.this":          lang.Text("This session", "Esta sesión"),
		"account.end":           lang.Text("End", "Cerrar"),
		"account.end_label":     lang.Text("End the session of %s", "Cerrar la sesión de %s"),

		"done.account.preferences":    lang.Text("Your settings are saved.", "Se guardaron sus preferencias."),
		"done.account.password":       lang.Text("Your password is changed, and your other sessions have ended.", "Su contraseña cambió y sus demás sesiones terminaron."),
		"done.account.session":        lang.Text("The session has ended.", "La sesión terminó."),
		"done.account.factor_removed": lang.Text("The second factor is off.", "El segundo factor está desactivado."),
	}
}
