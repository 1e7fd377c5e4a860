package console

func accountTexts() texts {
	return texts{
		"account.title":       {"Mi cuenta", "My account"},
		"account.preferences": {"Idioma y apariencia", "Language and look"},
		"account.language":    {"Idioma", "Language"},
		"account.theme":       {"Apariencia", "Look"},
		"account.automatic":   {"Como el navegador", "Like the browser"},
		"account.es":          {"Español", "Spanish"},
		"account.en":          {"Inglés", "English"},
		"account.light":       {"Clara", "Light"},
		"account.dark":        {"Oscura", "Dark"},
		"account.save":        {"Guardar", "Save"},

		"account.password":      {"Contraseña", "Password"},
		"account.password_lead": {"Al cambiarla terminan sus demás sesiones.", "When you change it, your other sessions end."},
		"account.password_now":  {"Contraseña actual", "Current password"},
		"account.password_save": {"Cambiar la contraseña", "Change the password"},

		"account.factor":      {"Segundo factor", "Second factor"},
		"account.factor_off":  {"Desactivado", "Off"},
		"account.factor_on":   {"Activado", "On"},
		"account.factor_lead": {"Además de la contraseña, la consola pide un código de una aplicación de su teléfono. Así nadie entra solo con su contraseña.", "In addition to the password, the console asks for a code of an app on your phone. A stolen password alone then opens nothing."},
		"account.must_enrol":  {"Este servicio exige un segundo factor a los operadores. Actívelo para usar las demás páginas.", "This service demands a second factor of operators. Set it up to use the other pages."},
		"account.begin":       {"Activar el segundo factor", "Set up the second factor"},
		"account.step_scan":   {"Abra su aplicación de códigos (Google Authenticator, Aegis, 1Password u otra) y lea este código QR.", "Open your code app (Google Authenticator, Aegis, 1Password or another one) and read this QR code."},
		"account.step_enter":  {"Escriba el código de 6 dígitos que muestra la aplicación.", "Enter the 6 digits that the app shows."},
		"account.qr":          {"Código QR del segundo factor", "QR code of the second factor"},
		"account.secret":      {"O escriba esta clave en la aplicación", "Or enter this key into the app"},
		"account.code":        {"Código de 6 dígitos", "Code of 6 digits"},
		"account.confirm":     {"Confirmar", "Confirm"},
		"account.restart":     {"Empezar con otra clave", "Start with another key"},
		"account.wrong_code":  {"El código no es correcto. Compruebe la hora de su teléfono y escriba el código que muestra ahora.", "The code is not right. Check the clock of your phone, and enter the code that it shows now."},
		"account.since":       {"Activado desde el %s. Le quedan %s códigos de recuperación.", "On since %s. You have %s recovery codes left."},
		"account.codes_title": {"Guarde estos códigos de recuperación ahora", "Keep these recovery codes now"},
		"account.codes_text":  {"Cada uno reemplaza una vez al código de su teléfono, por ejemplo si lo pierde. No se vuelven a mostrar.", "Each of them replaces the code of your phone once, for example when you lose it. They are not shown again."},
		"account.remove":      {"Quitar el segundo factor", "Remove the second factor"},
		"account.remove_ask":  {"¿Quitar el segundo factor? Su cuenta quedará protegida solo con la contraseña.", "Remove the second factor? Only the password will protect your account."},

		"account.wrong_password": {"La contraseña no es correcta.", "The password is not right."},

		"account.sessions":      {"Sesiones abiertas", "Open sessions"},
		"account.sessions_lead": {"Una sesión termina después de 12 horas sin uso y a los 7 días. Cierre las que no reconozca y cambie su contraseña.", "A session ends after 12 hours without use, and after 7 days. End those that you do not know, and change your password."},
		"account.browser":       {"Navegador", "Browser"},
		"account.address":       {"Dirección", "Address"},
		"account.started":       {"Inicio", "Started"},
		"account.used":          {"Último uso", "Last use"},
		"account.this":          {"Esta sesión", "This session"},
		"account.end":           {"Cerrar", "End"},
		"account.end_label":     {"Cerrar la sesión de %s", "End the session of %s"},

		"done.account.preferences":    {"Se guardaron sus preferencias.", "Your settings are saved."},
		"done.account.password":       {"Su contraseña cambió y sus demás sesiones terminaron.", "Your password is changed, and your other sessions have ended."},
		"done.account.session":        {"La sesión terminó.", "The session has ended."},
		"done.account.factor_removed": {"El segundo factor está desactivado.", "The second factor is off."},
	}
}
